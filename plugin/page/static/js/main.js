// Starts the panels, then polls the server.

import { startGuide } from "./guide.js";
import { byId } from "./dom.js";
import { startAnswer } from "./panels/answer.js";
import { startData } from "./panels/data.js";
import { startGallery } from "./panels/gallery.js";
import { startMatches } from "./panels/matches.js";
import { startMode } from "./panels/mode.js";
import { tell } from "./panels/notices.js";
import { startPast } from "./panels/past.js";
import { startPlan } from "./panels/plan.js";
import { choose, startActions, startQueries } from "./panels/queries.js";
import { startSinks } from "./panels/sinks.js";
import { startStates } from "./panels/states.js";
import { startStreams } from "./panels/streams.js";
import { startValues } from "./panels/values.js";
import { put, seePredicates, startWorkbench } from "./panels/workbench.js";
import { discover, refresh } from "./poll.js";
import { on, state } from "./state.js";
import { changeToken } from "./token.js";

startWorkbench();
startStreams();
startQueries((query) => put(query.text, query.language, query.name));
startActions();
startMatches();
startValues();
startAnswer();
startPlan();
startStates();
startPast();
startMode();
startData();
startGallery();
startGuide();
byId("use-token").addEventListener("click", async () => (await changeToken()) && refresh());
on(["live"], ({ live }) => {
  document.body.dataset.live = String(live);
});

try {
  await discover();
  if (state.live) {
    startSinks();
    await refresh();
    if (state.queries.length) choose(state.queries.at(-1).name);
  }
  seePredicates();
} catch (problem) {
  tell(problem.message, "bad");
}
document.body.dataset.ready = "true";

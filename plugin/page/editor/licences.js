// The licence texts of everything that is bundled, each once, under the names of the packages that it holds for.
import { readdirSync, readFileSync } from "node:fs";

const scopes = ["@codemirror", "@lezer", "@marijn"];
const names = [
  ...scopes.flatMap((scope) => readdirSync(`node_modules/${scope}`).map((name) => `${scope}/${name}`)),
  "crelt", "style-mod", "w3c-keyname",
].sort();
const byText = new Map();
for (const name of names) {
  const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  const text = readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();
  byText.set(text, [...(byText.get(text) ?? []), `${name} ${version} (${license})`]);
}
for (const [text, packages] of byText) console.log(`${packages.join("\n")}\n\n${text}\n\n${"-".repeat(80)}\n`);

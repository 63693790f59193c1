"""Why an EP-SPARQL query has answers or not: rows of the parts of WHERE over all that the streams have, with rules."""

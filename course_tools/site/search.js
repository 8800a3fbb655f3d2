// In which order the search lists what it finds. Sphinx puts this into its search and calls `score` for each result.
// Sections of notebooks and texts come first, then pages that have the words, then the reference, then source; whoever
// types a name as code has it ('causal_mask', 'MultiHead') finds that name first. Within each the order is Sphinx's own.
var Scorer = {
  objNameMatch: 100, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: function (result) {
    var page = result[0], score = result[4], kind = result[6];
    var asked = new URLSearchParams(location.search).get("q") || "";
    if (kind === "object" && score >= 100 && /^\S*(_|\w\.\w|[a-z][A-Z])\S*$/.test(asked.trim())) return 4000 + score;
    if (page.startsWith("_modules/")) return score;
    if (page.startsWith("reference/") || kind === "object" || kind === "index") return 1000 + score;
    return (kind === "title" ? 3000 : 2000) + score - (page === "changelog" ? 500 : 0);
  },
};

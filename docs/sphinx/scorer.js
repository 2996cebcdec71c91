// Pages that answer questions come before those that list: guides, then the reference, then cards and the changes.
const LATER = [
  [/^CHANGELOG$|^genindex$/, -9],
  [/^docs\/architecture$|^docs\/models\/(arguments|names|conformance)$/, -4],
  [/^lmms_eval\/tasks\/|^benchmarks$/, -3],
  [/^reference\/|^docs\/decisions\/|^examples\//, -2],
];
var Scorer = {
  score: ([page, , , , score]) => score + (LATER.find(([pattern]) => pattern.test(page))?.[1] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 3,
  objPrio: { 0: 5, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

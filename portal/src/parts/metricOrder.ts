// In which order metrics are shown: what one looks at a training for comes first, and what explains its speed last.

const SCORES = /loss|acc|top.?\d|error|err\b|f1|auc|iou|map\b|dice|bleu|perplex|ppl|reward|score|precision|recall/i;
const RATES = /^(lr|learning.?rate|momentum|weight.?decay)$|per.?sec|\/s$|throughput/i;

function place(name: string): number {
  if (SCORES.test(name)) return 0;
  return RATES.test(name) ? 1 : 2;
}

/** Orders names of metrics: losses and scores, rates, all others; the same kind by name. */
export function byInterest(a: string, b: string): number {
  return place(a) - place(b) || (a < b ? -1 : a > b ? 1 : 0);
}

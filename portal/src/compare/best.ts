// Which value of a metric is the best one.

export type Better = 'low' | 'high' | 'none';

const LOW = /loss|err(or)?s?\b|perplexity|\bppl\b|\b(r?mse|mae|wer|cer|fid|nll)\b|seconds|latency|duration/;
const HIGH =
  /acc(uracy)?\b|\btop_?\d|\b(f1|auc|auroc|map\d*|m?iou|bleu|rouge|r2)\b|precision|recall|score|per_second|throughput/;

/** What the name of a metric says of it. */
export function betterBy(name: string): Better {
  const words = name.toLowerCase().replace(/[^a-z0-9_]+/g, ' ');
  // "images_per_second" has "second" in it, and more of them are better.
  if (HIGH.test(words) || HIGH.test(words.replaceAll('_', ' '))) return 'high';
  return LOW.test(words) || LOW.test(words.replaceAll('_', ' ')) ? 'low' : 'none';
}

/** The indexes of the best values, if there are two values to choose from at least. */
export function bestOf(values: readonly (number | null)[], better: Better): Set<number> {
  const known = values.filter((value) => value !== null);
  if (better === 'none' || known.length < 2) return new Set();
  const best = better === 'low' ? Math.min(...known) : Math.max(...known);
  return new Set(values.flatMap((value, i) => (value === best ? [i] : [])));
}

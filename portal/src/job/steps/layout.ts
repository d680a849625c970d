// Places the steps of a pipeline from left to right in layers (Sugiyama, Tagawa and Toda 1981): each step stands
// right of all that it waits for; edges over several layers go through points of their own; the order within a
// layer is the one with the fewest crossings that sweeps of medians find; and each stands as near to its
// neighbours as those above and below leave room (pool adjacent violators).

export interface Size {
  width: number;
  height: number;
  /** Between two layers, and between two steps of a layer. */
  gapX: number;
  gapY: number;
}

export interface Placed {
  name: string;
  layer: number;
  x: number;
  y: number;
}

export interface Line {
  from: string;
  to: string;
  /** From the right side of one step to the left side of the other. */
  points: { x: number; y: number }[];
}

export interface Layout {
  steps: Placed[];
  lines: Line[];
  width: number;
  height: number;
}

interface Link {
  from: string;
  to: string;
}

/** A step, or a point of an edge on a layer that it passes. */
interface Spot {
  id: number;
  name: string | null;
  before: number[];
  after: number[];
}

const SWEEPS = 12;
const POINT = 14; // height that an edge takes in a layer that it passes

/** The longest way to each step. A circle, which the service refuses, does not hang it: it is cut somewhere. */
export function layersOf(names: string[], links: Link[]): Map<string, number> {
  const before = new Map<string, string[]>(names.map((name) => [name, []]));
  for (const { from, to } of links) before.get(to)?.push(from);
  const layers = new Map<string, number>();
  const open = new Set<string>();
  const layerOf = (name: string): number => {
    const known = layers.get(name);
    if (known != null) return known;
    if (open.has(name)) return -1;
    open.add(name);
    const layer = 1 + Math.max(-1, ...(before.get(name) ?? []).map(layerOf));
    open.delete(name);
    layers.set(name, layer);
    return layer;
  };
  names.forEach(layerOf);
  return layers;
}

export function layOut(names: string[], links: Link[], size: Size): Layout {
  const layerOf = layersOf(names, links);
  const spots: Spot[] = [];
  const layers: number[][] = [];
  const put = (name: string | null, layer: number): number => {
    const id = spots.length;
    spots.push({ id, name, before: [], after: [] });
    (layers[layer] ??= []).push(id);
    return id;
  };
  const ids = new Map(names.map((name) => [name, put(name, layerOf.get(name) ?? 0)]));
  const ways = links.flatMap(({ from, to }) => {
    const first = ids.get(from);
    const last = ids.get(to);
    const [a, b] = [layerOf.get(from), layerOf.get(to)];
    if (first == null || last == null || a == null || b == null || b <= a) return [];
    const way = [first];
    for (let layer = a + 1; layer < b; layer += 1) way.push(put(null, layer));
    way.push(last);
    way.slice(1).forEach((id, index) => {
      spots[way[index]!]!.after.push(id);
      spots[id]!.before.push(way[index]!);
    });
    return [{ from, to, way }];
  });
  const ordered = fewCrossings(layers, spots);
  const heights = spots.map((spot) => (spot.name == null ? POINT : size.height));
  const ys = heightsOf(ordered, spots, heights, size.gapY);
  const xOf = (layer: number) => layer * (size.width + size.gapX);
  const steps = names.map((name) => {
    const layer = layerOf.get(name) ?? 0;
    return { name, layer, x: xOf(layer), y: ys[ids.get(name)!]! - size.height / 2 };
  });
  const lines = ways.map(({ from, to, way }) => {
    const first = layerOf.get(from)!;
    const points = way.flatMap((id, index) => {
      const x = xOf(first + index);
      const y = ys[id]!;
      if (index === 0) return [{ x: x + size.width, y }];
      return index === way.length - 1 ? [{ x, y }] : [{ x, y }, { x: x + size.width, y }];
    });
    return { from, to, points };
  });
  const bottom = spots.map((spot) => ys[spot.id]! + heights[spot.id]! / 2);
  return {
    steps,
    lines,
    width: layers.length > 0 ? xOf(layers.length - 1) + size.width : 0,
    height: Math.max(0, ...bottom),
  };
}

/** How often edges between neighbouring layers cross. */
export function crossings(layers: number[][], spots: { after: number[] }[]): number {
  let count = 0;
  for (let i = 0; i + 1 < layers.length; i += 1) {
    const place = new Map(layers[i + 1]!.map((id, index) => [id, index]));
    const ends = layers[i]!.flatMap((id) => spots[id]!.after.map((to) => place.get(to)!).sort((a, b) => a - b));
    count += inversions(ends);
  }
  return count;
}

function inversions(values: number[]): number {
  if (values.length < 2) return 0;
  const middle = values.length >> 1;
  const left = values.slice(0, middle);
  const right = values.slice(middle);
  let count = inversions(left) + inversions(right);
  left.sort((a, b) => a - b);
  right.sort((a, b) => a - b);
  let j = 0;
  for (const value of left) {
    while (j < right.length && right[j]! < value) j += 1;
    count += j;
  }
  return count;
}

function fewCrossings(layers: number[][], spots: Spot[]): number[][] {
  let now = layers.map((layer) => [...layer]);
  let best = now;
  let fewest = crossings(now, spots);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const forward = sweep % 2 === 0;
    now = now.map((layer) => [...layer]);
    const order = now.map((_, index) => (forward ? index : now.length - 1 - index)).slice(1);
    for (const index of order) {
      const fixed = now[index + (forward ? -1 : 1)]!;
      const place = new Map(fixed.map((id, at) => [id, at]));
      const wish = new Map(now[index]!.map((id, at) => {
        const around = (forward ? spots[id]!.before : spots[id]!.after).map((other) => place.get(other)!);
        return [id, around.length > 0 ? median(around) : at];
      }));
      now[index]!.sort((a, b) => wish.get(a)! - wish.get(b)!);
    }
    const count = crossings(now, spots);
    if (count < fewest) [best, fewest] = [now, count];
  }
  return best;
}

/** The middle of each spot: near to the mean of its neighbours, and never over another. */
function heightsOf(layers: number[][], spots: Spot[], heights: number[], gap: number): number[] {
  const ys: number[] = spots.map(() => 0);
  const apart = (a: number, b: number) => (heights[a]! + heights[b]!) / 2 + gap;
  for (const layer of layers) {
    let y = 0;
    layer.forEach((id, index) => {
      y += index === 0 ? heights[id]! / 2 : apart(layer[index - 1]!, id);
      ys[id] = y;
    });
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const wishes = layer.map((id) => {
        const around = [...spots[id]!.before, ...spots[id]!.after];
        return around.length > 0 ? mean(around.map((other) => ys[other]!)) : ys[id]!;
      });
      const gaps = layer.map((id, index) => (index === 0 ? 0 : apart(layer[index - 1]!, id)));
      keepApart(wishes, gaps).forEach((y, index) => (ys[layer[index]!] = y));
    }
  }
  const top = Math.min(...spots.map((spot) => ys[spot.id]! - heights[spot.id]! / 2));
  return ys.map((y) => y - top);
}

/** The places nearest to the wishes (least squares) with at least `gaps[i]` between place i - 1 and place i. */
export function keepApart(wishes: number[], gaps: number[]): number[] {
  let offset = 0;
  const offsets = gaps.map((gap, index) => (offset += index === 0 ? 0 : gap));
  const blocks: { sum: number; count: number }[] = [];
  wishes.forEach((wish, index) => {
    blocks.push({ sum: wish - offsets[index]!, count: 1 });
    for (;;) {
      const last = blocks.at(-1)!;
      const before = blocks.at(-2);
      if (!before || before.sum / before.count <= last.sum / last.count) break;
      blocks.splice(-2, 2, { sum: before.sum + last.sum, count: before.count + last.count });
    }
  });
  return blocks
    .flatMap(({ sum, count }) => Array.from({ length: count }, () => sum / count))
    .map((place, index) => place + offsets[index]!);
}

function mean(values: number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

import { describe, expect, it } from 'vitest';
import { crossings, keepApart, layersOf, layOut } from './layout';

const SIZE = { width: 200, height: 60, gapX: 60, gapY: 16 };
const link = (text: string) => ({ from: text.split('-')[0]!, to: text.split('-')[1]! });

/** A repeatable source of numbers below `below`. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => ((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) >> 8) % below;
}

describe('layersOf', () => {
  it('puts each step behind the last of all that it waits for', () => {
    const layers = layersOf(['d', 'c', 'b', 'a'], ['a-b', 'b-c', 'a-d', 'c-d'].map(link));
    expect(Object.fromEntries(layers)).toEqual({ a: 0, b: 1, c: 2, d: 3 });
  });
  it('ends with a circle', () => {
    expect(layersOf(['a', 'b'], ['a-b', 'b-a'].map(link)).size).toBe(2);
  });
});

describe('crossings', () => {
  it('counts pairs of edges that cross', () => {
    const spots = [{ after: [3] }, { after: [2] }, { after: [] }, { after: [] }];
    expect(crossings([[0, 1], [2, 3]], spots)).toBe(1);
    expect(crossings([[1, 0], [2, 3]], spots)).toBe(0);
  });
});

describe('keepApart', () => {
  it('leaves who has room, and moves others as little as it can', () => {
    expect(keepApart([0, 50], [0, 10])).toEqual([0, 50]);
    expect(keepApart([20, 20, 20], [0, 10, 10])).toEqual([10, 20, 30]);
  });
});

describe('layOut', () => {
  it('stands a chain in one line', () => {
    const { steps, width, height } = layOut(['a', 'b', 'c'], ['a-b', 'b-c'].map(link), SIZE);
    expect(new Set(steps.map((step) => step.y))).toEqual(new Set([0]));
    expect({ width, height }).toEqual({ width: 720, height: 60 });
  });
  it('untangles what can be drawn without a crossing', () => {
    const { lines } = layOut(['a', 'b', 'x', 'y'], ['a-y', 'b-x'].map(link), SIZE);
    const [first, second] = lines.map((line) => line.points.map((point) => point.y));
    expect(Math.sign(first![0]! - second![0]!)).toBe(Math.sign(first![1]! - second![1]!));
  });
  it('takes edges around steps on the layers that they pass', () => {
    const { steps, lines } = layOut(['a', 'b', 'c'], ['a-b', 'b-c', 'a-c'].map(link), SIZE);
    const b = steps.find((step) => step.name === 'b')!;
    const long = lines.find((line) => line.from === 'a' && line.to === 'c')!;
    for (const { x, y } of long.points) {
      expect(x > b.x && x < b.x + SIZE.width && y > b.y && y < b.y + SIZE.height).toBe(false);
    }
  });
  it('has no step over another, of 200 with 400 edges, and is quick', () => {
    const next = numbers(7);
    const names = Array.from({ length: 200 }, (_, index) => `s${index}`);
    const links = Array.from({ length: 400 }, () => {
      const to = 1 + next(199);
      return { from: names[Math.max(0, to - 1 - next(40))]!, to: names[to]! };
    });
    const began = performance.now();
    const { steps, height } = layOut(names, links, SIZE);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(steps).toHaveLength(200);
    for (const a of steps) {
      expect(a.y).toBeGreaterThanOrEqual(0);
      expect(a.y + SIZE.height).toBeLessThanOrEqual(height + 0.001);
      for (const b of steps) {
        if (a.name < b.name && a.layer === b.layer) {
          expect(Math.abs(a.y - b.y)).toBeGreaterThanOrEqual(SIZE.height + SIZE.gapY - 0.001);
        }
      }
    }
  });
  it('lays out nothing', () => {
    expect(layOut([], [], SIZE)).toEqual({ steps: [], lines: [], width: 0, height: 0 });
  });
});

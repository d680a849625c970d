// What a job uses, as charts: one a column, with a curve for each node or rank.
import type { JobUsage } from '../api/client';
import type { ChartSeries } from '../parts/chartSeries';
import { type Points, pointsOf } from '../parts/points';
import type { Unit } from '../parts/units';

export interface UsageChart {
  column: string;
  title: string;
  unit: Unit;
  /** Whether the curves are of ranks, not of nodes. */
  byRank: boolean;
  series: ChartSeries[];
}

const COLUMNS: readonly (readonly [column: string, title: string, unit: Unit])[] = [
  ['cpu', 'Processors in use', 'cores'],
  ['cpu_wait', 'Waiting for a processor', 'share'],
  ['memory', 'Memory', 'bytes'],
  ['memory_left', 'Memory left', 'bytes'],
  ['gpu_use', 'GPUs in use', 'number'],
  ['gpu_memory', 'GPU memory', 'bytes'],
  ['gpu_power', 'GPU power', 'watts'],
  ['gpu_temperature', 'GPU temperature', 'celsius'],
  ['disk_read', 'Read from disks', 'bytes/s'],
  ['disk_write', 'Written to disks', 'bytes/s'],
  ['net_receive', 'Received by the machine', 'bytes/s'],
  ['net_send', 'Sent by the machine', 'bytes/s'],
  ['machine_cpu', 'Processors of the machine in use', 'cores'],
];

type Column = (number | null)[];
// Columns that a later version of the service adds are looked for by name.
type Table = Readonly<Record<string, unknown>>;

interface Owner {
  key: string;
  name: string;
  number: number;
  recent: Points;
  whole: Points;
}

/** The charts that there are values for. `nodes`: the names of the job's nodes; `ranks`: only these, all if empty. */
export function usageCharts(
  usage: JobUsage,
  byRank: boolean,
  nodes: readonly string[],
  ranks: readonly number[],
): UsageChart[] {
  return COLUMNS.flatMap(([column, title, unit]) => {
    const ofRanks = byRank || column === 'cpu_wait' ? rankOwners(usage, column, ranks) : [];
    const owners = ofRanks.length > 0 ? ofRanks : nodeOwners(usage, column, nodes);
    if (!owners.some(({ recent, whole }) => hasValue(recent) || hasValue(whole))) return [];
    return [{ column, title, unit, byRank: ofRanks.length > 0, series: owners.map(seriesOf) }];
  });
}

function nodeOwners(usage: JobUsage, column: string, names: readonly string[]): Owner[] {
  return usage.nodes.flatMap(({ node, name, recent, whole }) => {
    const points = pointsIn(recent, whole, recent.time, whole.time, column);
    const called = name || names[node] || `node ${node}`;
    return points ? [{ key: `node ${node}`, name: called, number: node, ...points }] : [];
  });
}

function rankOwners(usage: JobUsage, column: string, chosen: readonly number[]): Owner[] {
  return usage.nodes.flatMap(({ recent, whole }) => {
    const ranks = new Set([...recent.ranks, ...whole.ranks].map(({ rank }) => rank));
    return [...ranks].sort((a, b) => a - b).flatMap((rank) => {
      if (chosen.length > 0 && !chosen.includes(rank)) return [];
      const of = (tables: typeof recent.ranks) => tables.find((table) => table.rank === rank);
      const points = pointsIn(of(recent.ranks), of(whole.ranks), recent.time, whole.time, column);
      return points ? [{ key: `rank ${rank}`, name: `rank ${rank}`, number: rank, ...points }] : [];
    });
  });
}

function pointsIn(
  recent: Table | undefined,
  whole: Table | undefined,
  recentTimes: string[],
  wholeTimes: string[],
  column: string,
): { recent: Points; whole: Points } | null {
  const [fine, coarse] = [recent?.[column], whole?.[column]];
  if (!isColumn(fine) && !isColumn(coarse)) return null;
  return {
    recent: pointsOf(recentTimes.map(seconds), isColumn(fine) ? fine : []),
    whole: pointsOf(wholeTimes.map(seconds), isColumn(coarse) ? coarse : []),
  };
}

function isColumn(value: unknown): value is Column {
  return Array.isArray(value) && value.every((one) => one === null || typeof one === 'number');
}

function hasValue({ y }: Points): boolean {
  return y.some((value) => !Number.isNaN(value));
}

function seconds(time: string): number {
  return Date.parse(time) / 1000;
}

/** The whole life, and the newest samples in their own resolution; these alone where they are all. */
function seriesOf({ key, name, number, recent, whole }: Owner): ChartSeries {
  const shown = { key, name, color: number };
  if (isAll(recent, whole)) return { ...shown, points: recent };
  if (recent.x.length < 2) return { ...shown, points: whole };
  return { ...shown, points: whole, detail: { points: recent, covers: [recent.x[0]!, Infinity] } };
}

function isAll(recent: Points, whole: Points): boolean {
  if (recent.x.length < 2) return false;
  if (whole.x.length < 2) return true;
  return recent.x[0]! < whole.x[1]!; // the samples reach into the first span
}

// The ranks of a job as a grid, by node: how each stands and what it uses now. A rank leads to its output.
import { Alert, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { answer, type Job, service } from '../../api/client';
import { hasEnded, LIVE } from '../../api/queries';
import { bytes, number } from '../../parts/format';
import classes from './overview.module.css';
import { countsOf, endOf, type Rank, ranksOf, stateWord } from './ranks';

const LARGE = 64; // ranks up to which each is a card with its numbers
const SLOW = 10_000;

// One value of each: a gang of a thousand ranks has too many for more.
const nowQuery = (job: Job) =>
  queryOptions({
    queryKey: ['usage now', job.id],
    queryFn: () =>
      answer(service.GET('/v1/jobs/{job}/usage', { params: { path: { job: job.id }, query: { points: 1 } } })),
    // An answer of before the job's end does not have the ends of all ranks.
    refetchInterval: ({ state: { data } }) =>
      hasEnded(job.state) && data && !data.live ? false : job.world_size > LARGE ? SLOW : LIVE,
    enabled: job.nodes.length > 0,
  });

export function Ranks({ job }: { job: Job }) {
  const { data: usage } = useQuery(nowQuery(job));
  const live = !hasEnded(job.state);
  const byNode = ranksOf(job, usage);
  const all = [...byNode.values()].flat();
  const mostCpu = Math.max(1, ...all.map(({ cpu }) => cpu ?? 0));
  const large = job.world_size <= LARGE;
  return (
    <Paper withBorder p="sm">
      <Stack gap="sm">
        <Group justify="space-between">
          <Title order={2} size="h5">
            {job.world_size === 1 ? 'Its process' : `${job.world_size.toLocaleString('en')} ranks`}
          </Title>
          <Text size="xs" c="dimmed">
            {countsOf(all)}. {live && usage?.live ? 'What each uses now; blue: processors that are busy. ' : ''}
            Choose one to read its output.
          </Text>
        </Group>
        {live && usage?.problems.map((problem) => (
          <Alert key={problem} color="yellow" py={6}>
            {problem}
          </Alert>
        ))}
        <div className={large ? classes.rows : classes.columns}>
          {[...byNode].map(([node, ranks]) => (
            <div key={node} className={classes.node}>
              <Text size="sm" className="one-line" title={node}>
                {node || 'no node yet'}
              </Text>
              <div className={large ? classes.large : classes.small}>
                {ranks.map((rank) => (
                  <Cell key={rank.rank} job={job} rank={rank} large={large} mostCpu={mostCpu} />
                ))}
              </div>
            </div>
          ))}
        </div>
      </Stack>
    </Paper>
  );
}

/** By what a rank's cell is coloured. */
function howOf({ failure, state, code, signal }: Rank): string {
  if (failure) return failure.consequence ? 'followed' : 'cause';
  if (state === 'ended' && (code || signal)) return 'followed';
  return state ?? 'unknown';
}

function Cell({ job, rank, large, mostCpu }: { job: Job; rank: Rank; large: boolean; mostCpu: number }) {
  const { cpu, memory, failure } = rank;
  const how = howOf(rank);
  const uses = cpu === null && memory === null ? '' : `${number(cpu)} cores, ${bytes(memory)}`;
  const word = failure ? (failure.consequence ? 'stopped' : 'failed') : stateWord(rank);
  const detail = failure ? failure.what : endOf(rank) || uses;
  const told = [word, detail].filter(Boolean).join(', ');
  return (
    <Link
      href={`/jobs/${encodeURIComponent(job.id)}/logs?rank=${rank.rank}${how === 'cause' ? '&cause=1' : ''}`}
      className={classes.rank}
      data-how={how}
      title={large ? detail : `Rank ${rank.rank} on ${rank.node}: ${told}`}
      aria-label={`Rank ${rank.rank} on ${rank.node || 'no node yet'}: ${told}`}
    >
      {large ? (
        <>
          <strong>{rank.rank}</strong> {word}
          <div className={rank.state === 'ended' && !failure ? undefined : 'one-line'}>{detail || '–'}</div>
        </>
      ) : (
        rank.rank
      )}
      {cpu !== null && !failure && <span className={classes.fill} style={{ width: `${(100 * cpu) / mostCpu}%` }} />}
    </Link>
  );
}

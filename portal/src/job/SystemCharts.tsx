// What a job's nodes or ranks use, over time.
import { Alert, Group, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import type { Job, JobUsage } from '../api/client';
import { hasEnded } from '../api/queries';
import { Chart, ChartGrid } from '../parts/Chart';
import { ZoomHint } from '../parts/ChartControls';
import type { ChartGroup } from '../parts/chartGroup';
import { useView } from '../parts/useView';
import type { UsageChart } from './usageSeries';

const MOST = 32; // curves of a chart

interface SystemChartsProps {
  job: Job;
  usage: JobUsage;
  charts: readonly UsageChart[];
  group: ChartGroup;
  /** Whether the metrics above share the time axis, and have the buttons for it. */
  shared: boolean;
}

export function SystemCharts({ job, usage, charts, group, shared }: SystemChartsProps) {
  const [view, setView] = useView();
  const cut = charts.some(({ series }) => series.length > MOST);
  return (
    <Stack gap="sm">
      <Group gap="md">
        <Title order={2} size="h5">
          What it uses
        </Title>
        {job.world_size > 1 && (
          <SegmentedControl
            size="xs"
            aria-label="A curve for each"
            value={view.get('by') === 'rank' ? 'rank' : 'node'}
            onChange={(by) => setView({ by: by === 'rank' ? by : null })}
            data={[
              { value: 'node', label: 'By node' },
              { value: 'rank', label: 'By rank' },
            ]}
          />
        )}
        {!shared && charts.length > 0 && <ZoomHint group={group} />}
      </Group>
      {usage.problems.map((problem) => (
        <Alert key={problem} color="yellow" p="xs">
          {problem}
        </Alert>
      ))}
      {cut && (
        <Text size="sm" c="dimmed">
          {`The first ${MOST} curves of each chart are shown. Choose ranks above to see others by rank.`}
        </Text>
      )}
      {charts.length === 0 ? (
        <Text c="dimmed">{whyNothing(job)}</Text>
      ) : (
        <ChartGrid>
          {charts.map(({ column, title, unit, series }) => (
            <Chart
              key={column}
              title={title}
              series={series.slice(0, MOST)}
              unit={unit}
              xUnit="time"
              group={group}
              height={150}
            />
          ))}
        </ChartGrid>
      )}
    </Stack>
  );
}

function whyNothing(job: Job): string {
  if (job.started === null && !hasEnded(job.state)) return 'Nothing yet: it is measured once the job runs.';
  if (job.started === null) return 'Nothing: the job never ran.';
  return 'Nothing was measured: the job ran for less than two seconds, or the service does not measure (--no-usage).';
}

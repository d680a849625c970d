// One job of the list.
import { memo, type MouseEvent } from 'react';
import { Link } from 'wouter';
import type { JobSummary } from '../api/client';
import { ago, duration, moment, secondsBetween, startText } from '../parts/format';
import { StateBadge } from '../parts/StateBadge';
import css from './jobs.module.css';
import { nameOf } from './nameOf';

export interface RowProps {
  job: JobSummary;
  /** Its place in the table, from 0, and on the page, in pixels. */
  index: number;
  offset: number;
  now: number;
  current: boolean;
  chosen: boolean;
  onCurrent(job: string): void;
  onChoose(job: string, range: boolean): void;
}

export const JobRow = memo(function JobRow(props: RowProps) {
  const { job, index, offset, now, current, chosen, onCurrent, onChoose } = props;
  const name = nameOf(job);
  const ran = secondsBetween(job.started, job.ended, now);
  const reason = job.expected_start ? `${job.reason}; starts ${startText(job)}` : job.reason;
  // The event of a change does not tell whether shift was held, that of a click does; the space bar clicks too.
  const choose = (event: MouseEvent) => onChoose(job.id, event.shiftKey);
  return (
    <div
      role="row"
      id={rowId(job.id)}
      className={css.row}
      style={{ transform: `translateY(${offset}px)` }}
      aria-rowindex={index + 2}
      aria-selected={chosen}
      data-current={current || undefined}
      onClick={() => onCurrent(job.id)}
    >
      <div role="gridcell" className={css.check}>
        <input type="checkbox" checked={chosen} readOnly onClick={choose} aria-label={`Choose ${name}`} />
      </div>
      <div role="gridcell" className={`${css.cell} ${css.name}`}>
        <Link
          href={`/jobs/${encodeURIComponent(job.id)}`}
          className={`${css.cell} ${css.link}`}
          title={`${name}\n${job.id}`}
        >
          {name}
        </Link>
        {name !== job.id && <span className={`${css.cell} ${css.id} ${css.quiet} mono`}>{job.id}</span>}
      </div>
      <div role="gridcell" className={css.state}>
        <StateBadge state={job.state} />
      </div>
      <div role="gridcell" className={`${css.cell} ${css.experiment}`} title={job.experiment_name}>
        {job.experiment_name}
      </div>
      <div role="gridcell" className={`${css.cell} ${css.nodes} ${css.right}`}>
        {job.node_count || '–'}
      </div>
      <div role="gridcell" className={`${css.cell} ${css.age} ${css.right}`} title={timesOf(job)}>
        {ago(job.created, now)}
      </div>
      <div
        role="gridcell"
        className={`${css.cell} ${css.ran} ${css.right} ${ran === null ? css.never : ''}`}
        title={timesOf(job)}
      >
        {ran === null ? '–' : duration(ran)}
      </div>
      <div role="gridcell" className={`${css.cell} ${css.command} mono`} title={job.command}>
        {job.command}
      </div>
      <div role="gridcell" className={`${css.cell} ${css.reason} ${css.quiet}`} title={reason}>
        {reason}
      </div>
    </div>
  );
});

/** The id of a row's element. */
export function rowId(job: string): string {
  return `job-${job}`;
}

function timesOf(job: JobSummary): string {
  const times = [`Submitted ${moment(job.created)}`];
  if (job.started) times.push(`Started ${moment(job.started)}`);
  if (job.ended) times.push(`Ended ${moment(job.ended)}`);
  return times.join('\n');
}

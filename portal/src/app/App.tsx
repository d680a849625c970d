// Which page an address shows. Every view has one, and so a link that can be shared.
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Route, Router, Switch, useLocation } from 'wouter';
import { ServiceError } from '../api/client';
import { problemsQuery } from '../api/queries';
import JobPage from '../job/JobPage';
import { JobsPage } from '../jobs/JobsPage';
import { Boundary } from '../parts/Boundary';
import { Loading, Nowhere } from '../parts/Notices';
import { Shell } from './Shell';
import { SignIn } from './SignIn';

// React holds what was loaded late back for 300 ms after its fallback: a job's page is not loaded late.
const NodesPage = lazy(() => import('../nodes/NodesPage'));
const ComparePage = lazy(() => import('../compare/ComparePage'));
const SubmitPage = lazy(() => import('../submit/SubmitPage'));

/** `refused`: why the link that opened the page could not sign in, or null. */
export function App({ refused }: { refused: string | null }) {
  const problems = useQuery(problemsQuery);
  const stranger = problems.error instanceof ServiceError && problems.error.status === 401;
  if (stranger) return <SignIn refused={refused} />;
  return (
    <Router base="/portal">
      <Shell>
        <Page />
      </Shell>
    </Router>
  );
}

function Page() {
  const [place] = useLocation();
  return (
    <Boundary place={place}>
      <Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/" component={JobsPage} />
          <Route path="/jobs/:job/:tab?">{({ job, tab }) => <JobPage key={job} job={job} tab={tab} />}</Route>
          <Route path="/nodes" component={NodesPage} />
          <Route path="/compare" component={ComparePage} />
          <Route path="/submit" component={SubmitPage} />
          <Route component={Nowhere} />
        </Switch>
      </Suspense>
    </Boundary>
  );
}

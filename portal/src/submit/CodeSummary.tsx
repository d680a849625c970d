// What will be sent of a dropped folder, and what stays at home and why.
import { Alert, List, Text } from '@mantine/core';
import { bytes as sizeOf } from '../parts/format';
import type { Code, Plan } from './plan';

const SHOWN = 8;

export function CodeSummary({ plan, refusal }: { plan: Plan; refusal: string | null }) {
  return (
    <>
      {refusal && (
        <Alert color="red" role="alert" title="The code cannot be sent from here">
          {refusal}
        </Alert>
      )}
      {plan.codes.length === 0 && plan.absent.length === 0 && (
        <Text size="sm">
          The job file names no code folder: nothing of the folder is sent. “code: .” sends all of it.
        </Text>
      )}
      {plan.absent.map((path) => (
        <Alert key={path} color="yellow" title={`Code “${path}” is not in the folder`}>
          Drop a folder that has both the job file and its code. Otherwise the service looks for it on its own machine.
        </Alert>
      ))}
      {plan.codes.map((code) => (
        <OneCode key={code.key} code={code} />
      ))}
    </>
  );
}

function OneCode({ code }: { code: Code }) {
  const more = code.leftOut.length - SHOWN;
  return (
    <div>
      <Text size="sm">
        Code “{code.path}”: {code.files.size} {code.files.size === 1 ? 'file' : 'files'}, {sizeOf(code.bytes)}, will be
        sent.
      </Text>
      {code.leftOut.length > 0 && (
        <>
          <Text size="sm">Left out:</Text>
          <List size="sm" withPadding>
            {code.leftOut.slice(0, SHOWN).map(({ path, by }) => (
              <List.Item key={path} style={{ overflowWrap: 'anywhere' }}>
                {path} (by {by})
              </List.Item>
            ))}
            {more > 0 && <List.Item>and {more} more</List.Item>}
          </List>
        </>
      )}
      {code.secrets.length > 0 && (
        <Alert color="yellow" mt="xs" title="Files that often hold secrets will be sent">
          {code.secrets.join(', ')}. Name them in .amlignore if they are none of the job’s business.
        </Alert>
      )}
    </div>
  );
}

import { Code, Stack, Text } from '@mantine/core';

const BY_FILE = `import json, os, time

with open(os.environ["TUTTI_METRICS_FILE"], "a") as file:
    print(json.dumps({"step": step, "loss": loss, "time": time.time()}), file=file)`;

const BY_MLFLOW = `import mlflow

mlflow.log_metric("loss", loss, step=step)`;

/** What a script does to have charts. */
export function HowToReport() {
  return (
    <Stack gap="xs" maw={720}>
      <Text>A script reports a metric with a line in a file that each rank has:</Text>
      <Code block tabIndex={0} aria-label="Lines for a script">{BY_FILE}</Code>
      <Text>or with MLflow, where its environment has it. Nothing needs to be set up:</Text>
      <Code block tabIndex={0} aria-label="Lines for a script">{BY_MLFLOW}</Code>
    </Stack>
  );
}

import { describe, expect, it } from 'vitest';
import { codePaths, faultsOf, joined, looksLikeJob, markOf, namesRelativePath } from './yaml';

describe('codePaths', () => {
  it('finds plain, quoted and flow values, once each', () => {
    const steps = 'jobs:\n  a: {command: ls, code: "b c"}\n  d:\n    code: ./src\n    trial: {code: e, x: 1}\n';
    const text = `code: ./src  # mine\n${steps}`;
    expect(codePaths(text)).toEqual(['./src', 'b c', 'e']);
  });

  it('passes over commands, other keys and addresses', () => {
    const text = 'command: |\n  code: x\n  echo\nvscode: y\ncode: git+https://host/x\nenv:\n  error_code: 5\n';
    expect(codePaths(text)).toEqual([]);
  });
});

describe('joined', () => {
  it('resolves steps', () => {
    expect(joined('', './src/')).toBe('src');
    expect(joined('jobs', '..')).toBe('');
    expect(joined('jobs', '../../x')).toBe('../x');
    expect(joined('/portal/a/jobs', '../src')).toBe('/portal/a/src');
    expect(joined('/portal/a', '.')).toBe('/portal/a');
    expect(joined('/portal', '/data/x')).toBe('/data/x');
  });
});

describe('looksLikeJob', () => {
  it('tells jobs from other YAML', () => {
    expect(looksLikeJob('type: command\ncommand: ls')).toBe(true);
    expect(looksLikeJob('command: >-\n  python x\ncompute: local')).toBe(true);
    expect(looksLikeJob('name: env\ndependencies:\n- python=3.11')).toBe(false);
    expect(looksLikeJob('services:\n  web:\n    command: run')).toBe(false);
  });
});

describe('namesRelativePath', () => {
  it('finds files beside the job file', () => {
    for (const line of [
      'environment: file:conda.yaml', 'environment: {conda_file: conda.yaml, image: x}', 'trial: ./fit.yml',
      'inputs:\n  data:\n    path: data/a', 'jobs: {a: {component: "../a.yml"}}',
    ]) {
      expect(namesRelativePath(line), line).toBe(true);
    }
  });

  it('passes over code, commands, addresses and what is absolute', () => {
    for (const line of [
      'code: ./src', 'command: |\n  path: x\n', 'command: ./train.sh', 'path: azureml://datastores/a/paths/b',
      'path: /data', 'path: ${{inputs.x}}',
      'trial:\n  command: ls', 'environment: file:/x/conda.yaml', 'environment: host', 'display_name: ./', '# path: x',
    ]) {
      expect(namesRelativePath(line), line).toBe(false);
    }
  });
});

describe('faultsOf', () => {
  it('tells the lines of this file from others', () => {
    expect(faultsOf('job.yml:2: unknown key\nother.yml:3: no\njob.yml: too large', 'job.yml')).toEqual([
      { line: 2, text: 'unknown key' },
      { line: null, text: 'other.yml:3: no' },
      { line: null, text: 'job.yml: too large' },
    ]);
  });
});

describe('markOf', () => {
  it('marks what the fault quotes, or else the line', () => {
    expect(markOf('  comand: ls', 'unknown key "comand" (did you mean "command"?)')).toEqual({ from: 2, to: 8 });
    expect(markOf('  count: two  ', 'count must be a whole number, but is "2"')).toEqual({ from: 2, to: 12 });
    expect(markOf('', 'there is no command')).toEqual({ from: 0, to: 0 });
  });
});

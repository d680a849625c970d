import { describe, expect, it } from 'vitest';
import { fileText, submittedFile, withoutNowhere } from './submittedFile';

describe('submittedFile', () => {
  it('joins the folder and the last part of what was typed', () => {
    expect(submittedFile({ file: 'jobs/wait.yml', base_directory: '/x/jobs' })).toBe('/x/jobs/wait.yml');
    expect(submittedFile({ file: '../wait.yml', base_directory: '/x/' })).toBe('/x/wait.yml');
    expect(submittedFile({ file: 'job.yml', base_directory: '/' })).toBe('/job.yml');
    expect(submittedFile({ file: 'job.yml', base_directory: '/portals' })).toBe('/portals/job.yml');
  });

  it('knows none of what lies on no machine of the service', () => {
    for (const base_directory of ['/portal', '/portal/drop/jobs', null]) {
      expect(submittedFile({ file: 'job.yml', base_directory })).toBe(null);
    }
    expect(submittedFile({ file: 'job of train.py', base_directory: '/x' })).toBe(null);
    expect(submittedFile({ file: 'job', base_directory: '/x' })).toBe(null);
  });
});

describe('fileText', () => {
  it('names no folder that is not there', () => {
    expect(fileText({ file: 'job.yml', base_directory: '/portal/drop' })).toBe('job.yml, submitted from the portal');
    expect(fileText({ file: 'job of train.py', base_directory: '/x' })).toBe('job of train.py');
  });
});

describe('withoutNowhere', () => {
  it('says what to do about a path of the browser’s machine', () => {
    const drop = 'drop the folder with it and the job file here, or choose that folder';
    expect(withoutNowhere('code: /portal/src does not exist')).toBe(`code: src has not been sent: ${drop}`);
    expect(withoutNowhere('code: /portal does not exist')).toBe(`code: . has not been sent: ${drop}`);
    const say = 'is looked for on the service’s machine: say in “Relative paths count from” where that is';
    expect(withoutNowhere('input "a": /portal/drop/a.csv does not exist')).toBe(`input "a": drop/a.csv ${say}`);
    const lacks = 'environment: open /portal/conda.yaml: No such file or directory';
    expect(withoutNowhere(lacks)).toBe(`environment: conda.yaml ${say}`);
  });

  it('leaves other faults as they are', () => {
    for (const fault of ['code: /portals/src does not exist', 'code: /x/portal/a does not exist', 'unknown key "a"']) {
      expect(withoutNowhere(fault)).toBe(fault);
    }
  });
});

import { describe, expect, it } from 'vitest';
import { fileText, submittedFile } from './submittedFile';

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

import { describe, expect, it } from 'vitest';
import { baseOf, bodyOf, draftOfFile, draftOfKept, draftOfFolder, emptyDraft, toKeep, withFolder } from './draft';

const folder = { reading: 1, name: 'drop', files: new Map<string, File>() };
const jobFiles = [{ path: 'a.yml', text: 'a' }, { path: 'jobs/b.yml', text: 'b' }];

describe('a draft that is kept', () => {
  it('is none where nothing was typed', () => {
    expect(toKeep(emptyDraft, emptyDraft)).toBe(null);
    expect(toKeep({ ...emptyDraft, text: 'x' }, emptyDraft)).toMatchObject({ text: 'x', rerun: false });
  });

  it('comes back without the folder, and has its text in the folder that is chosen again', () => {
    const typed = { ...draftOfFolder(folder, jobFiles, jobFiles[1]), text: 'typed' };
    const back = draftOfKept(emptyDraft, toKeep(typed, emptyDraft)!);
    expect(back).toMatchObject({ file: 'b.yml', text: 'typed', lacks: { name: 'drop', jobFile: 'jobs/b.yml' } });
    expect(withFolder(back, folder, jobFiles)).toEqual(typed);
    expect(withFolder(back, { ...folder, name: 'other' }, jobFiles).text).toBe('a');
    expect(withFolder(back, folder, jobFiles.slice(0, 1)).text).toBe('a');
  });
});

describe('where paths count from', () => {
  it('is the folder that was told, before the one of the draft itself', () => {
    const draft = draftOfFile('job.yml', 'command: ls');
    expect(baseOf(draft)).toBe('/portal');
    expect(bodyOf({ ...draft, place: '/home/me' }, undefined).base_directory).toBe('/home/me');
  });
});

import { describe, expect, it } from 'vitest';
import { sortCode } from './ignore';

async function kept(files: Record<string, string>, code = '') {
  return (await sortCode(Object.keys(files), code, async (path) => files[path]!)).kept;
}

const names = (...paths: string[]) => Object.fromEntries(paths.map((path) => [path, '']));

describe('sortCode', () => {
  it('leaves out what is of this machine in any case', async () => {
    const files = names('a.py', '.git/config', 'x/__pycache__/a.pyc', 'env/pyvenv.cfg', 'env/bin/python',
      'results/.tutti-download', 'results/logs/a');
    expect(await kept(files)).toEqual(['a.py']);
  });

  it('reads patterns as git does', async () => {
    const files = {
      '.gitignore': '# no\n*.log\n!keep.log\n/data\nbuild/\na/**/b\nw[0-9].pt\ndocs/*.md\n\\#x\nspace \n',
      ...names('x.log', 'deep/x.log', 'keep.log', 'data/a', 'deep/data/a', 'build/x', 'deep/build', 'a/b', 'a/c/d/b',
        'w1.pt', 'w10.pt', 'docs/a.md', 'docs/more/a.md', '#x', 'space'),
    };
    expect(await kept(files)).toEqual(
      ['.gitignore', 'keep.log', 'deep/data/a', 'deep/build', 'w10.pt', 'docs/more/a.md']);
  });

  it('keeps out what lies in a folder that is left out', async () => {
    expect(await kept({ '.gitignore': 'out\n!out/keep\n', 'out/keep': '', 'b': '' })).toEqual(['.gitignore', 'b']);
  });

  it('lets a deeper file decide first, and .amlignore stand instead of all others', async () => {
    const files = { '.gitignore': '*.bin\n', 'a/.gitignore': '!x.bin\n', 'a/x.bin': '', 'b/x.bin': '' };
    expect(await kept(files)).toEqual(['.gitignore', 'a/.gitignore', 'a/x.bin']);
    expect(await kept({ '.amlignore': 'b\n', ...files })).toEqual(
      ['.amlignore', '.gitignore', 'a/.gitignore', 'a/x.bin']);
  });

  it('takes a folder within, by the ignore files above it too', async () => {
    const files = { '.gitignore': '*.log\n', 'src/a.py': '', 'src/a.log': '', 'other.py': '' };
    expect(await kept(files, 'src/')).toEqual(['src/a.py']);
  });

  it('says what stayed, folders as one', async () => {
    const files = { '.gitignore': 'data/\n', 'data/a': '', 'data/b/c': '' };
    const { leftOut } = await sortCode(Object.keys(files), '', async (path) => files[path as keyof typeof files]);
    expect(leftOut).toEqual([{ path: 'data/', by: '.gitignore' }]);
  });
});

import { describe, expect, it } from 'vitest';
import { readTable, separatorOf } from './csv';

const rows = (text: string) => readTable(text, ',', 1000).rows;

describe('readTable', () => {
  it('reads rows with either line end, and a last one without', () => {
    expect(rows('a,b\r\n1,2\n3,4')).toEqual([['a', 'b'], ['1', '2'], ['3', '4']]);
  });

  it('keeps separators, quotes and line ends that are in quotes', () => {
    expect(rows('"a,b","say ""hi""","two\nlines"\nx,,z\n')).toEqual([
      ['a,b', 'say "hi"', 'two\nlines'], ['x', '', 'z'],
    ]);
  });

  it('keeps empty fields at the ends of rows', () => {
    expect(rows(',\n1,')).toEqual([['', ''], ['1', '']]);
  });

  it('passes over empty lines and the byte order mark', () => {
    expect(rows('\uFEFFa,b\n\n1,2\n')).toEqual([['a', 'b'], ['1', '2']]);
  });

  it('takes the rest for a field whose quote is not closed', () => {
    expect(rows('a,"b\nc')).toEqual([['a', 'b\nc']]);
  });

  it('stops after so many rows and says that there are more', () => {
    expect(readTable('1\n2\n3\n', ',', 2)).toEqual({ rows: [['1'], ['2']], more: true });
    expect(readTable('1\n2\n', ',', 2).more).toBe(false);
  });
});

describe('separatorOf', () => {
  it('goes by the name and the first line', () => {
    expect(separatorOf('a.tsv', 'a,b')).toBe('\t');
    expect(separatorOf('a.csv', 'a;b;c\n1,5;2,5;3')).toBe(';');
    expect(separatorOf('a.csv', 'a,b')).toBe(',');
  });
});

import { expect, test } from 'vitest';
import { csvOf } from './csv';

test('quotes what needs it, and lets no name become a formula', () => {
  expect(csvOf([['a "b", c', -1.5, null], ['=cmd()', 2, 'x\ny']])).toBe('"a ""b"", c",-1.5,\r\n\'=cmd(),2,"x\ny"\r\n');
});

// Wraps bytes into a frame of zstd (RFC 8878) whose blocks hold them as they are: every decoder reads it, and
// a browser has no compressor of it.

const BLOCK = 128 * 1024; // bytes, the most that a block may hold
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
const DESCRIPTOR = 0; // no checksum, no size of the content, a window
const WINDOW = (17 - 10) << 3; // 2^17 bytes, as much as a block

export function zstdFrame(content: Uint8Array): Uint8Array<ArrayBuffer> {
  const blocks = Math.max(1, Math.ceil(content.length / BLOCK));
  const frame = new Uint8Array(MAGIC.length + 2 + 3 * blocks + content.length);
  frame.set([...MAGIC, DESCRIPTOR, WINDOW]);
  let at = MAGIC.length + 2;
  for (let block = 0; block < blocks; block += 1) {
    const bytes = content.subarray(block * BLOCK, (block + 1) * BLOCK);
    const last = block === blocks - 1 ? 1 : 0;
    const header = (bytes.length << 3) | last; // the type between them, 0: raw
    frame.set([header & 0xff, (header >> 8) & 0xff, header >> 16], at);
    frame.set(bytes, at + 3);
    at += 3 + bytes.length;
  }
  return frame;
}

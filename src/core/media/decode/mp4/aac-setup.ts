import { latin1 } from '../../bytes.js'

/** Enough for the headers of one track and the description of its samples. */
const searched = 64 * 1024

/**
 * The setup of an AAC decoder (AudioSpecificConfig) in the index of an MP4 file with one track (ISO/IEC 14496-14, 5.6;
 * 14496-1, 7.2.6), as a part of these bytes.
 *
 * @throws Error if the index describes no AAC
 */
export function aacSetup(index: Uint8Array): Uint8Array {
  const at = latin1(index, 0, Math.min(searched, index.length)).indexOf('esds')
  if (at < 0) throw new Error('the description of the sound has no esds')
  const elementary = descriptor(index, at + 8, 3)
  const decoder = descriptor(index, elementary + 3, 4)
  const setup = descriptor(index, decoder + 13, 5)
  return index.subarray(setup, setup + (index[setup - 1] ?? 0))
}

/** Where the content of a descriptor begins; its length has seven bits in each byte. */
function descriptor(bytes: Uint8Array, at: number, tag: number): number {
  if (bytes[at] !== tag) throw new Error(`the description of the sound has no part ${tag}`)
  let end = at + 1
  while ((bytes[end] ?? 0) & 0x80) end++
  return end + 1
}

import { concat } from '../../bytes.js'
import type { AudioStream } from '../../dsp/audio-stream.js'
import { type CodecLoader, type DeclaredMono, type EncodedPieces, openCodec } from '../codec-stream.js'
import type { FileBytes } from '../file-bytes.js'
import type { PacketTrack } from './mpeg-ts-packets.js'
import { quietly } from '../quiet-console.js'
import { UndecodedError } from '../undecoded.js'
import { withWarnings } from '../with-warnings.js'

const codecs = new Set(['aac', 'mp3', 'ac3', 'eac3'])
/** Packets are a few hundred bytes; calling a decoder for each would take longer. */
const pieceBytes = 16 * 1024

/**
 * Opens the sound of an MPEG transport stream (TS, M2TS).
 *
 * @throws UndecodedError if it has no sound that can be decoded
 */
export async function openTransportStream(
  file: FileBytes,
  load: CodecLoader,
  declaredMono: (codec: string) => DeclaredMono | undefined,
): Promise<AudioStream> {
  const { packetTrack } = await import('./mpeg-ts-packets.js')
  let furthest = 0
  const read = (position: number, length: number) => {
    furthest = Math.max(furthest, Math.min(file.size, position + length))
    return file.read(position, length)
  }
  const track = await quietly(() => packetTrack({ size: file.size, read })).catch((cause: unknown) => {
    const what = 'The MPEG transport stream (TS) could not be read; it is damaged or was cut off.'
    throw new UndecodedError(what, { reason: 'decode_failed', cause })
  })
  const { codec = null } = track ?? {}
  if (!track || codec === null || !codecs.has(codec))
    throw new UndecodedError(
      'The file is an MPEG transport stream (TS) in which no AAC, MP3, MP2, AC-3 or E-AC-3 was found.',
    )
  const lost: string[] = []
  const pieces = piecesOf(track.packets, lost)
  const stream = await openCodec({ codec, load, pieces, format: 'mpeg-ts', declared: declaredMono(codec) })
  return { ...withWarnings(stream, () => lost), readFraction: () => furthest / file.size }
}

async function* piecesOf(packets: PacketTrack['packets'], lost: string[]): EncodedPieces {
  let parts: Uint8Array[] = []
  let length = 0
  const joined = () => {
    const piece = concat(parts)
    parts = []
    length = 0
    return piece
  }
  try {
    for (;;) {
      const next = await quietly(() => packets.next())
      if (next.done) break
      parts.push(next.value)
      length += next.value.length
      if (length >= pieceBytes) yield joined()
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error
    lost.push('The MPEG transport stream is damaged; the sound after that was left out.')
  } finally {
    await packets.return()
  }
  if (length > 0) yield joined()
}

import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { badInput } from '../../engine/errors.js'
import { PeaksProcess } from './peaks-process.js'

/**
 * Makes an `AudioPeaks` that reads each file in a child process: decoding never blocks the host, and no decoder is
 * loaded into it. A process is kept for a while, because starting one blocks the event loop for some milliseconds.
 *
 * @param directory for the copy of the file that the child reads. Default: the system's temporary folder.
 */
export function audioPeaks({ directory = tmpdir() }: { directory?: string } = {}) {
  const idle: PeaksProcess[] = []
  return async (file: { body: AsyncIterable<Uint8Array>; fileName: string }, signal: AbortSignal): Promise<string> => {
    const folder = await mkdtemp(join(directory, 'stemwork-peaks-'))
    try {
      const path = join(folder, `file${extname(file.fileName)}`)
      await pipeline(file.body, createWriteStream(path), { signal })
      const child = idle.pop() ?? new PeaksProcess((ended) => forget(idle, ended))
      const json = await child.measure(path, signal)
      if (child.isAlive) idle.push(child)
      if (json === undefined)
        throw badInput('decode_failed', 'The file holds no audio that can be read, so it cannot be drawn.')
      return json
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}

function forget(idle: PeaksProcess[], ended: PeaksProcess): void {
  const at = idle.indexOf(ended)
  if (at >= 0) idle.splice(at, 1)
}

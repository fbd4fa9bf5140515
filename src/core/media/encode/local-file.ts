import { open, type FileHandle } from 'node:fs/promises'
import type { EncoderState } from './audio-encoder.js'
import { type FileWriter, fileWriter, type WritableBytes } from './file-writer.js'

/** Creates or replaces a local file. */
export async function createFile(path: string): Promise<FileWriter> {
  return fileWriter(writable(await open(path, 'w'), 0))
}

/** Opens a file for an encoder: a new one, or the one that an encoder left in this state. */
export async function encodedFile(path: string, from: EncoderState | undefined): Promise<FileWriter> {
  return from ? fileWriter(writable(await open(path, 'r+')), from.bytes) : await createFile(path)
}

/** @param end size of a new file, which is written at the handle's own position, because a pipe has no other */
function writable(file: FileHandle, end?: number): WritableBytes {
  return {
    async write(content, position) {
      const isNext = position === end
      for (let done = 0; done < content.length;) {
        const at = isNext ? null : position + done
        done += (await file.write(content, done, content.length - done, at)).bytesWritten
      }
      if (isNext) end = position + content.length
    },
    close: () => file.close(),
  }
}

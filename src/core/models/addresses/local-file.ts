import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ByteSource, PermanentFailure } from './byte-source.js'

/** A local file, by path or `file:` URL; relative paths start at `folder`. The file is only read. */
export function localFile(address: string, folder: string): ByteSource {
  const path = address.startsWith('file:') ? pathOf(address, folder) : resolve(folder, address)
  return {
    name: path,
    async open({ from, signal }) {
      const file = await stat(path).catch((error: unknown) => {
        throw new PermanentFailure(`${path} cannot be read`, { cause: error })
      })
      if (!file.isFile()) throw new PermanentFailure(`${path} is not a file`)
      const validator = `${file.size}-${file.mtimeMs}`
      return { from, validator, totalBytes: file.size, chunks: createReadStream(path, { start: from, signal }) }
    },
  }
}

/** `file:weights/a.onnx` is relative, as a path would be; `file:///weights/a.onnx` is a URL. */
function pathOf(address: string, folder: string): string {
  return address.startsWith('file://') ? fileURLToPath(address) : resolve(folder, address.slice('file:'.length))
}

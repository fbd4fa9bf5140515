import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, readFile, rm, writeFile } from 'node:fs/promises'
import { z } from 'zod'

/** Origin of the bytes in a partial file, stored next to it. */
const originSchema = z.object({ source: z.string(), validator: z.string().optional() })

type Origin = z.infer<typeof originSchema>

export type PartialFile = Awaited<ReturnType<typeof openPartialFile>>

/**
 * Opens a file whose writing a later process can continue: it keeps bytes that an earlier process read from the same
 * source, and starts empty otherwise. Its hash is computed along the way.
 */
export async function openPartialFile(path: string, source: string) {
  const known = await originOf(path)
  const file = await open(path, constants.O_RDWR | constants.O_CREAT)
  let origin: Origin = known?.source === source ? known : { source }
  let hash = createHash('sha256')
  let bytes = 0
  const partial = {
    get bytes() {
      return bytes
    },

    get validator() {
      return origin.validator
    },

    async startOver(validator: string | undefined): Promise<void> {
      await file.truncate(0)
      hash = createHash('sha256')
      bytes = 0
      origin = { ...origin, validator }
      await writeFile(originPath(path), JSON.stringify(origin))
    },

    async append(chunk: Uint8Array): Promise<void> {
      hash.update(chunk)
      for (let done = 0; done < chunk.length;)
        done += (await file.write(chunk, done, chunk.length - done, bytes + done)).bytesWritten
      bytes += chunk.length
    },

    /** Lower-case hexadecimal digits. */
    sha256: () => hash.copy().digest('hex'),

    async close(): Promise<void> {
      try {
        await file.sync()
      } finally {
        await file.close()
      }
    },
  }
  try {
    if (known?.source !== source) await partial.startOver(undefined)
    else
      for await (const chunk of file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Uint8Array>) {
        hash.update(chunk)
        bytes += chunk.length
      }
    return partial
  } catch (error) {
    await file.close()
    throw error
  }
}

export async function removePartialFile(path: string): Promise<void> {
  await rm(path, { force: true })
  await rm(originPath(path), { force: true })
}

function originPath(path: string): string {
  return `${path}.json`
}

async function originOf(path: string): Promise<Origin | undefined> {
  try {
    return originSchema.parse(JSON.parse(await readFile(originPath(path), 'utf8')))
  } catch {
    // Absent, or cut off when its writer died: the download cannot be continued from these bytes.
    return undefined
  }
}

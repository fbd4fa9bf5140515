// journal.mjs: a durable map: every change is a line of a file before it is visible. For one process.
import { open, readFile, rename } from 'node:fs/promises'

/** @typedef {[key: string, value: unknown][]} Changes Values are JSON; `undefined` removes the key. */

/** @param {string} path */
export async function openJournal(path) {
  const values = await read(path)
  // The file is rewritten without outdated lines. A crash leaves the old file or the new one.
  const file = await open(`${path}.new`, 'w')
  await file.write([...values].map((change) => line([change])).join(''))
  await file.sync()
  await rename(`${path}.new`, path)
  let size = (await file.stat()).size
  let last = Promise.resolve()

  return {
    /** @type {ReadonlyMap<string, unknown>} */
    values,

    /** Runs one `work` at a time, so that values it has read are still current when it writes. */
    async exclusively(/** @type {() => Promise<any>} */ work) {
      const result = last.then(work)
      last = result.then(
        () => {},
        () => {},
      )
      return result
    },

    /** Writes all changes or, if it throws, none. */
    async write(/** @type {Changes} */ changes) {
      const bytes = Buffer.from(line(changes))
      try {
        await file.write(bytes, 0, bytes.length, size)
        await file.datasync()
      } catch (error) {
        await file.truncate(size)
        throw error
      }
      size += bytes.length
      apply(values, changes)
    },

    async close() {
      await last
      await file.close()
    },
  }
}

/** @typedef {Awaited<ReturnType<typeof openJournal>>} Journal */

const line = (/** @type {Changes} */ changes) =>
  `${JSON.stringify(changes.map(([key, value]) => (value === undefined ? [key] : [key, value])))}\n`

function apply(/** @type {Map<string, unknown>} */ values, /** @type {Changes} */ changes) {
  for (const [key, value] of changes) {
    if (value === undefined) values.delete(key)
    else values.set(key, value)
  }
}

async function read(/** @type {string} */ path) {
  /** @type {Map<string, unknown>} */
  const values = new Map()
  const text = await readFile(path, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  // A line without an end was cut off by a crash and never acknowledged.
  for (const each of text.split('\n').slice(0, -1)) apply(values, JSON.parse(each))
  return values
}

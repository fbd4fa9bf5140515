import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { invalidOptions } from '../../core/engine/errors.js'

/**
 * The secret that signs upload and result links, kept in a file that only its owner can read, so that links survive a
 * restart.
 */
export async function linkSecret(path: string): Promise<string> {
  try {
    await writeFile(path, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const secret = (await readFile(path, 'utf8')).trim()
  if (/^[0-9a-f]{64}$/.test(secret)) return secret
  throw invalidOptions(
    `${path} does not contain a secret of 64 hexadecimal digits. Delete the file to create a new secret; existing ` +
      'links then stop working.',
  )
}

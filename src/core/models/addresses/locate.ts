import { type ByteSource, type LocatedFile, PermanentFailure } from './byte-source.js'
import { httpFile } from './http-file.js'
import { npmPackageFile } from './npm-package.js'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface LocateOptions {
  /** Relative paths start here. */
  folder: string
  /** Allows `http:`, for servers that the operator has configured; the hash is checked anyway. */
  allowHttp?: boolean
  signal: AbortSignal
}

/**
 * Resolves an address: `https://...`, `file:...` or a path, each with `#path` for a file in a `.tar.gz` or `.tar.bz2`,
 * or `npm:package@version/path`.
 *
 * @throws PermanentFailure for any other address
 */
export async function locate(
  address: string,
  { folder, allowHttp = false, signal }: LocateOptions,
): Promise<LocatedFile> {
  if (address.startsWith('npm:')) return npmPackageFile(address, signal)
  const { source, format, member } = partsOf(address)
  const archive = format && member ? { format, member } : undefined
  if (!needsNetwork(source)) return { source: localFile(source, folder), archive }
  if (source.startsWith('https:') || (allowHttp && source.startsWith('http:'))) {
    const { username, password, host } = new URL(source)
    if (username === '' && password === '') return { source: httpFile(source), archive }
    throw new PermanentFailure(`the address of ${host} has a user name or a password; expected one without`)
  }
  throw new PermanentFailure(`${address} is not a supported address; expected https:, npm:, file: or a path`)
}

/** Two letters at least: `C:\models` is a path. */
export function needsNetwork(address: string): boolean {
  return /^[a-z][a-z0-9+.-]+:/i.test(address) && !address.startsWith('file:')
}

/** The same file, or its archive, on a mirror: a folder, local or on a web server, with all files under their names. */
export function onMirror(mirror: string, address: string, file: string): string {
  const { source, member } = partsOf(address)
  const name = member === undefined ? file : `${source.slice(source.lastIndexOf('/') + 1)}#${member}`
  return `${mirror.replace(/[/\\]+$/, '')}/${name}`
}

function partsOf(address: string): { source: string; format?: 'tar.gz' | 'tar.bz2'; member?: string } {
  const [, source, format, member] = /^(.*\.(tar\.gz|tar\.bz2))#(.+)$/.exec(address) ?? []
  return source === undefined ? { source: address } : { source, format: format as 'tar.gz' | 'tar.bz2', member }
}

/** A local file, by path or `file:` URL; relative paths start at `folder`. The file is only read. */
function localFile(address: string, folder: string): ByteSource {
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

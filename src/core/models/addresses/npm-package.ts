import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { homeFolder } from '../cache.js'
import { type LocatedFile, PermanentFailure } from './byte-source.js'
import { httpFile } from './http-file.js'

const defaultRegistry = 'https://registry.npmjs.org/'

/**
 * A file inside the tarball of an npm package, by `npm:package@version/path`. The package is not installed and runs no
 * script.
 *
 * @throws PermanentFailure for a malformed address or a package that the registry does not have
 */
export async function npmPackageFile(address: string, signal: AbortSignal): Promise<LocatedFile> {
  const [, name, version, member] = /^npm:((?:@[\w.-]+\/)?[\w.-]+)@([\w.+-]+)\/(.+)$/.exec(address) ?? []
  if (name === undefined || version === undefined || member === undefined)
    throw new PermanentFailure(`${address} is not of the form npm:package@version/path`)
  const registry = await npmRegistry(name)
  const url = new URL(`${name.replace('/', '%2f')}/${version}`, registry)
  const response = await fetch(url, { signal })
  if (!response.ok) {
    await response.body?.cancel()
    const answer = `the HTTP status ${response.status} to ${name}@${version}`
    const message = `The npm registry ${registry} answered with ${answer}`
    throw response.status >= 500 ? new Error(message) : new PermanentFailure(message)
  }
  const { dist } = (await response.json()) as { dist?: { tarball?: unknown } }
  if (typeof dist?.tarball !== 'string')
    throw new PermanentFailure(`The npm registry ${registry} names no tarball of ${name}@${version}`)
  return { source: httpFile(dist.tarball), archive: { format: 'tar.gz', member } }
}

/**
 * The registry that npm would use: from the environment, else from the `.npmrc` in this folder, else from the user's.
 */
export async function npmRegistry(name: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const scope = /^@[^/]+/.exec(name)?.[0]
  const user = env.NPM_CONFIG_USERCONFIG ?? env.npm_config_userconfig ?? join(homeFolder(), '.npmrc')
  const files = await Promise.all([join(process.cwd(), '.npmrc'), user].map(settingsIn))
  const scoped = scope === undefined ? [] : files.map((settings) => settings.get(`${scope}:registry`))
  const general = [
    env.npm_config_registry ?? env.NPM_CONFIG_REGISTRY,
    ...files.map((settings) => settings.get('registry')),
  ]
  const found = [...scoped, ...general].find((url) => url !== undefined && URL.canParse(url)) ?? defaultRegistry
  return found.endsWith('/') ? found : `${found}/`
}

async function settingsIn(path: string): Promise<Map<string, string>> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const lines = text.matchAll(/^\s*([^#;=\s]+)\s*=\s*(.*?)\s*$/gm)
  return new Map([...lines].map(([, key = '', value = '']) => [key, value.replace(/^"(.*)"$/, '$1')]))
}

import { readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ModelEntry } from './model-entry.js'

/** The folder of pulled models: `STEMWORK_MODELS`, else in the platform's cache folder. */
export function modelCacheFolder(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  if (env.STEMWORK_MODELS) return resolve(env.STEMWORK_MODELS)
  const home = homeFolder()
  if (platform === 'darwin') return join(home, 'Library', 'Caches', 'stemwork', 'models')
  if (platform === 'win32')
    return join(env.LOCALAPPDATA ?? join(home, 'AppData', 'Local'), 'stemwork', 'Cache', 'models')
  return join(env.XDG_CACHE_HOME || join(home, '.cache'), 'stemwork', 'models')
}

/** The user's home folder; the root for a user ID without a name if `HOME` is not set, as in Docker. */
export function homeFolder(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}

/**
 * The model's folder in the cache. For a user's own model its name includes the hash, because two users, or two
 * versions, may choose the same name.
 */
export function folderInCache(cacheFolder: string, { facts, files, folder }: ModelEntry): string {
  return join(cacheFolder, folder === undefined ? facts.name : `${facts.name}-${files[0]?.sha256?.slice(0, 12)}`)
}

/** The content of one of the cache's JSON files; undefined if it is absent or damaged. */
export async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as unknown
  } catch {
    return undefined
  }
}

/** Replaces the file atomically. */
export async function writeJson(path: string, content: unknown): Promise<void> {
  const unfinished = `${path}.${process.pid}.part`
  await writeFile(unfinished, `${JSON.stringify(content, null, 2)}\n`, { flush: true })
  await rename(unfinished, path)
}

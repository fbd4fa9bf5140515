import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { invalidOptions } from '../core/engine/errors.js'
import { packageFile } from '../core/engine/package-files.js'

/** The fields of a Next.js configuration that are read and set here. */
export interface NextSettings {
  serverExternalPackages?: string[]
  outputFileTracingIncludes?: Record<string, string[]>
}

/**
 * Packages that only this package loads, and only once they are needed, if the project has them. Next.js sees the other
 * peers: hosts import them, or a subpath that does.
 */
const latePeers = ['onnxruntime-node', '@tus/server']

/**
 * A configuration of Next.js for a project that embeds stemwork: keeps the package out of the bundles, and puts the
 * files that its child process loads into `output: 'standalone'` and into the functions of hosts that trace imports. Of
 * onnxruntime-node it takes the binaries of this platform, so build where, or on what, the program will run.
 *
 * @param route glob of the routes that embed the engine. Default: all.
 * @example
 * export default withStemwork({ output: 'standalone' }, '/api/media/**')
 */
export function withStemwork<Settings extends object = NextSettings>(
  settings?: Settings & NextSettings,
  route?: string,
): Settings & NextSettings
export function withStemwork(settings: NextSettings = {}, route = '/**'): NextSettings {
  if (typeof settings !== 'object' || settings === null || 'then' in settings)
    // Spread into the result, it would be ignored silently.
    throw invalidOptions(
      'withStemwork takes the configuration as an object. Of a function or a promise, pass what it returns: ' +
        'export default async (phase) => withStemwork(await settings(phase)).',
    )
  const { serverExternalPackages = [], outputFileTracingIncludes = {} } = settings
  const files = [...packageFolders()].flatMap(([folder, name]) => filesOf(name, folder))
  return {
    ...settings,
    serverExternalPackages: [...new Set([...serverExternalPackages, 'stemwork'])],
    outputFileTracingIncludes: {
      ...outputFileTracingIncludes,
      [route]: [...(outputFileTracingIncludes[route] ?? []), ...files],
    },
  }
}

/** Globs from the project's folder, where `next build` runs. */
function filesOf(name: string, folder: string): string[] {
  const path = relative(process.cwd(), folder).replaceAll('\\', '/')
  const inside = (glob: string) => `${path.startsWith('.') ? '' : './'}${path}/${glob}`
  if (name !== 'onnxruntime-node') return [inside('**/*')]
  return [inside('package.json'), inside('dist/**/*'), inside(`bin/*/${process.platform}/${process.arch}/**/*`)]
}

/** This package and all of its runtime dependencies: names by folder, as a package may be installed twice. */
function packageFolders(): Map<string, string> {
  const found = new Map<string, string>()
  const own = fileURLToPath(packageFile('./'))
  const visit = (name: string, folder: string, peers: readonly string[]) => {
    if (found.has(folder)) return
    found.set(folder, name)
    const { dependencies, optionalDependencies } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string> | undefined>
    for (const needed of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
      const neededFolder = folderOf(needed, folder)
      if (neededFolder !== undefined) visit(needed, neededFolder, [])
    }
  }
  visit('stemwork', own, latePeers)
  return found
}

/** Searches like Node, but without resolving, because a package need not export its package.json. */
function folderOf(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return candidate
    if (folder === dirname(folder)) return undefined
  }
}

import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { StemworkError } from './errors.js'

// Empty in a host's CommonJS bundle; in an ES module bundle, the bundle's URL. The published package bundles this file
// into one at the same depth in `dist` (`scripts/bundle.mjs`).
const here: string | undefined = import.meta.url
const root = new URL('../../../', here ?? 'file:///in/a/bundle/')
/** The folder of the build that contains this file: `dist`, or `build` in this repository's tests. */
const scripts = new URL('../../', here ?? 'file:///in/a/bundle/')

/**
 * The URL of a file of this package, which may be missing. Use this function and the next to resolve files, never
 * `new URL('./name', import.meta.url)`: for that, bundlers copy the file without its imports.
 *
 * @param path from the package's folder, for example `dist/console/`
 */
export function packageFile(path: string): URL {
  return new URL(path, root)
}

/**
 * The URL of a script of this build, for a child process, a thread or an import at run time.
 *
 * @param path one of the scripts in `scripts/bundle.mjs`, for example `core/engine/runner/main.js`
 */
export function scriptFile(path: string): URL {
  return new URL(path, scripts)
}

/**
 * The path of a file or folder of this package.
 *
 * @throws StemworkError `MISSING_DEPENDENCY`, with the remedy, when this code was bundled or copied without the
 * package's files
 */
export function installedFile(path: string): string {
  return installed(packageFile(path))
}

/** The path of a script that `scriptFile` locates; throws as `installedFile` does. */
export function installedScript(path: string): string {
  return installed(scriptFile(path))
}

function installed(url: URL): string {
  assertInstalled()
  if (!existsSync(url)) throw bundled(url)
  return fileURLToPath(url)
}

/**
 * Ensures that this code runs from an installed package. Next to a bundle, a file with the right name may belong to the
 * host, and running it as a child would start the host recursively.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` as above
 */
export function assertInstalled(): void {
  const url = packageFile('package.json')
  let name: unknown
  try {
    name = (JSON.parse(readFileSync(url, 'utf8')) as { name?: unknown }).name
  } catch (error) {
    throw bundled(url, error)
  }
  if (name !== 'stemwork') throw bundled(url)
}

/** The version of this package. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version
}

function bundled(url: URL, cause?: unknown): StemworkError {
  return new StemworkError(
    'MISSING_DEPENDENCY',
    'A file of the stemwork package is missing, probably because a bundler copied its code without its other ' +
      'files. Keep the package out of the bundle and install it where the program runs. esbuild: ' +
      '--external:stemwork; webpack: externals: [/^stemwork/]; Rollup: external: [/^stemwork/]; Vite: ssr.external: ' +
      "['stemwork']; Next.js: withStemwork() of stemwork/next. All of it: " +
      'https://github.com/stemwork/stemwork/blob/main/docs/platforms.md',
    { cause: cause ?? new Error(`there is no ${fileURLToPath(url)} of the package stemwork`) },
  )
}

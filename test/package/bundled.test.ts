import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, type Format } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packInto, root, unpackInto } from './tarball.js'

// `test/platforms` has the other bundlers, with packages from a registry.
const folder = mkdtempSync(join(tmpdir(), 'stemwork-bundled-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

beforeAll(() => {
  unpackInto(folder, packInto(folder))
  copyFileSync(join(root, 'test/package/fixtures/separation.mjs'), join(folder, 'separation.mjs'))
})

/** Bundles the program and runs it. */
async function runBundle(file: string, format: Format, external: string[]) {
  const outfile = join(folder, 'dist', file)
  const settings = { bundle: true, platform: 'node', logLevel: 'silent', absWorkingDir: folder } as const
  await build({ ...settings, entryPoints: ['separation.mjs'], format, external, outfile })
  return spawnSync(process.execPath, [outfile], { cwd: folder, encoding: 'utf8' })
}

describe('a program in a bundle', () => {
  for (const [file, format] of [
    ['server.mjs', 'esm'],
    ['server.cjs', 'cjs'],
  ] as const) {
    test(`separates a song when stemwork was left out of it (${format})`, async () => {
      const { stdout, stderr } = await runBundle(file, format, ['stemwork'])
      expect(stdout, stderr).toBe('SUCCEEDED vocals accompaniments\n')
    })
  }

  // `main.js` beside the bundle's code would be the bundle itself: as its own child it would start children without
  // end.
  for (const [file, format] of [
    ['main.js', 'esm'],
    ['main.cjs', 'cjs'],
  ] as const) {
    test(`is told how to leave stemwork out when it was taken in (${format} in ${file})`, async () => {
      const { stdout, stderr } = await runBundle(`${format}/${file}`, format, [])
      expect(stdout, stderr).toBe('')
      expect(stderr).toContain("code: 'MISSING_DEPENDENCY'")
      expect(stderr).toContain('--external:stemwork')
    })
  }
})

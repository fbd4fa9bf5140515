import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
// @ts-expect-error A plain script.
import { folders as listed } from '../../scripts/mutation/folders.mjs'
import survivors from '../../scripts/mutation/survivors.json' with { type: 'json' }

const root = fileURLToPath(new URL('../..', import.meta.url))
const folders = listed as { folder: string; tests: string[] }[]

// `npm run test:mutation` takes too long for CI: what it reads may move without a notice.
test('the folders, tests and explained survivors of mutation testing exist', () => {
  const paths = folders.flatMap(({ folder, tests }) => [folder, ...tests]).map((path) => path.replace(/\/\*$/, ''))
  expect(paths.filter((path) => !existsSync(root + path))).toEqual([])
  const files = new Set(
    folders.flatMap(({ folder }) => readdirSync(root + folder, { recursive: true, encoding: 'utf8' })),
  )
  const names = new Set(Array.from(files, (path) => path.slice(path.lastIndexOf('/') + 1)))
  expect(Object.keys(survivors).filter((key) => !names.has(key.slice(0, key.indexOf(':'))))).toEqual([])
})

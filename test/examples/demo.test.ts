import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('`npm run demo` separates its song and shows scores far above those of guesses', async () => {
  const script = fileURLToPath(new URL('../../scripts/demo.mjs', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script])
  const scoreOf = (row: string) => Number(new RegExp(`${row} +(-?[\\d.]+)`).exec(stdout)?.[1])
  expect(scoreOf('this separation')).toBeGreaterThan(scoreOf('150 Hz to 12 kHz') + 5)
})

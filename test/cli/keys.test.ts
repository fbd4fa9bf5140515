import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
let data: string

beforeEach(async () => void (data = await mkdtemp(join(tmpdir(), 'stemwork-keys-'))))
afterEach(() => rm(data, { recursive: true, force: true }))

function keys(...words: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, 'keys', ...words, '--data', data, '--json'], {
    encoding: 'utf8',
  })
  return {
    status,
    stderr,
    value: (stdout ? JSON.parse(stdout) : undefined) as { key: string; id: string; state: string }[] & {
      key: string
      id: string
    },
  }
}

test('a key is made, listed without its secret, rotated with an overlap and revoked', async () => {
  const made = keys('create', '--label', 'web shop').value
  expect(made.key).toContain(made.id)
  expect(keys('list').value).toMatchObject([{ id: made.id, label: 'web shop', state: 'active' }])
  expect(await readFile(join(data, 'stemwork.db'), 'latin1')).not.toContain(made.key)

  const next = keys('rotate', made.id, '--overlap-hours', '2').value
  expect(keys('list').value.map(({ id, state }) => [id, state.slice(0, 5)])).toEqual(
    expect.arrayContaining([
      [next.id, 'activ'],
      [made.id, 'until'],
    ]),
  )

  expect(keys('revoke', made.id).status).toBe(0)
  expect(keys('list').value.find(({ id }) => id === made.id)?.state).toBe('ended')
})

test('an unknown key, a missing id and a missing store are named', () => {
  expect(keys('revoke', 'nothing')).toMatchObject({ status: 1, stderr: expect.stringContaining('nothing') })
  expect(keys('rotate')).toMatchObject({ status: 2, stderr: expect.stringContaining('needs the id of a key') })
  const { status, stderr } = spawnSync(process.execPath, [cli, 'keys', 'list'], { encoding: 'utf8' })
  expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('--data') })
})

test('a webhook secret is shown when it is made; once it is replaced, the application has the new one', async () => {
  const made = keys('create', '--app', 'shop').value as { webhookSecret?: string }
  expect(made.webhookSecret).toMatch(/^whsec_/)
  expect(keys('create', '--app', 'shop').value).not.toHaveProperty('webhookSecret')
  const next = keys('webhook-secret', '--app', 'shop').value as { secret?: string }
  expect(next.secret).toMatch(/^whsec_/)
  expect(next.secret).not.toBe(made.webhookSecret)
  const file = join(data, 'secret')
  await writeFile(file, `${made.webhookSecret}\n`)
  expect(keys('webhook-secret', '--app', 'shop', '--secret-file', file).value).toMatchObject({
    secret: made.webhookSecret,
  })
  expect(keys('webhook-secret', '--app', 'nobody')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('nobody'),
  })
})

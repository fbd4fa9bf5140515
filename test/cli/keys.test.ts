import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command, type Finished, stemwork } from './stemwork.js'
import { folderOfEachTest } from '../temporary-folder.js'

const data = folderOfEachTest()

async function keys(...words: string[]) {
  return answer(await command(['keys', ...words, '--data', data, '--json']))
}

function answer({ status, stdout, stderr }: Finished) {
  return {
    status,
    stderr,
    value: (stdout ? JSON.parse(stdout) : undefined) as { key: string; id: string; state: string }[] & {
      key: string
      id: string
    },
  }
}

test('a data folder that another store leaves unused is told of', async () => {
  expect((await keys('create')).stderr).not.toContain('warn')
  const own = join(data, 'stemwork.db')
  expect((await keys('list', '--store', `sqlite:${own}`)).stderr).toBe('')
  const { value, stderr } = await keys('list', '--store', `sqlite:${join(data, 'other.db')}`)
  expect(value).toEqual([])
  expect(stderr).toMatch(/warn.* has jobs and keys of its own, which are not used because --store names another/)
  expect(stderr).toContain(own)
})

test('a key is made, listed without its secret, rotated with an overlap and revoked', async () => {
  const { value: made } = answer(await stemwork(['keys', 'create', '--label', 'web shop', '--data', data, '--json']))
  expect(made.key).toContain(made.id)
  expect((await keys('list')).value).toMatchObject([{ id: made.id, label: 'web shop', state: 'active' }])
  expect(await readFile(join(data, 'stemwork.db'), 'latin1')).not.toContain(made.key)

  const next = (await keys('rotate', made.id, '--overlap-hours', '2')).value
  expect((await keys('list')).value.map(({ id, state }) => [id, state.slice(0, 5)])).toEqual(
    expect.arrayContaining([
      [next.id, 'activ'],
      [made.id, 'until'],
    ]),
  )

  expect((await keys('revoke', made.id)).status).toBe(0)
  expect((await keys('list')).value.find(({ id }) => id === made.id)?.state).toBe('ended')
})

test('an unknown key, a missing id and a missing store are named', async () => {
  expect(await keys('revoke', 'nothing')).toMatchObject({ status: 1, stderr: expect.stringContaining('nothing') })
  expect(await keys('rotate')).toMatchObject({ status: 2, stderr: expect.stringContaining('needs the id of a key') })
  const { status, stderr } = await command(['keys', 'list'])
  expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('--data') })
})

test('a webhook secret is shown when it is made; once it is replaced, the application has the new one', async () => {
  const made = (await keys('create', '--app', 'shop')).value as { webhookSecret?: string }
  expect(made.webhookSecret).toMatch(/^whsec_/)
  expect((await keys('create', '--app', 'shop')).value).not.toHaveProperty('webhookSecret')
  const next = (await keys('webhook-secret', '--app', 'shop')).value as { secret?: string }
  expect(next.secret).toMatch(/^whsec_/)
  expect(next.secret).not.toBe(made.webhookSecret)
  const file = join(data, 'secret')
  await writeFile(file, `${made.webhookSecret}\n`)
  expect((await keys('webhook-secret', '--app', 'shop', '--secret-file', file)).value).toMatchObject({
    secret: made.webhookSecret,
  })
  expect(await keys('webhook-secret', '--app', 'nobody')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('nobody'),
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runsTypeScript } from '../../src/cli/input/module-file.js'
import { expectToTeach } from '../mistakes/table.js'
import { hasProgram } from '../servers/found-server.js'
import { command, Stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const key = 'a-key-from-the-configuration'
const place = temporaryFolder()

let folders = 0
/** Makes a folder with these files. */
async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = join(place, String(folders++))
  await mkdir(folder)
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  return folder
}

describe('a configuration file', () => {
  test('starts a service as flags would; variables and flags take precedence, and lists are joined', async () => {
    const config = { port: 0, console: true, apiKeys: [key], data: 'data', aliases: ['own/one=service/loudness'] }
    const folder = await folderWith({ 'stemwork.config.mjs': `export default ${JSON.stringify(config)}` })
    const args = ['serve', '--aliases', 'own/two=service/loudness']
    const service = new Stemwork(args, folder, { STEMWORK_CONSOLE: '0', STEMWORK_API_KEYS: 'a-key-of-the-variable' })
    const [, base = ''] = await service.printed('stdout', /on (\S+)\n/)
    const ask = (path: string, authorization: string) => fetch(base + path, { headers: { authorization } })
    for (const each of [key, 'a-key-of-the-variable']) expect((await ask('/application', each)).status).toBe(200)
    for (const alias of ['one', 'two']) expect((await ask(`/workflow/own/${alias}`, key)).status).toBe(200)
    expect((await ask('/console', key)).status).toBe(404)
    service.kill('SIGINT')
    expect((await service.finished()).status).toBe(0)
    // Commands that inspect a service read the same file, and ignore entries that are not among their options.
    const { status, stdout } = await command(['keys', 'list', '--json'], folder)
    expect(status).toBe(0)
    expect(stdout.match(/"id":"own-/g)).toHaveLength(2)
  })

  test('sets limits, quotas and the like, for which there are no flags', async () => {
    const config = {
      port: 0,
      apiKeys: [key],
      engine: { limits: { maxFileBytes: 10 }, retention: { resultsMs: 3_600_000 } },
      handler: { rateLimits: { create: { requests: 1, perSeconds: 3600 } } },
    }
    const folder = await folderWith({ 'stemwork.config.json': JSON.stringify(config) })
    const service = new Stemwork(['serve'], folder)
    const [, base = ''] = await service.printed('stdout', /on (\S+)\n/)
    const ask = (path: string, more?: RequestInit) => fetch(base + path, { headers: { authorization: key }, ...more })
    const { uploadUrl } = (await (await ask('/upload')).json()) as { uploadUrl: string }
    expect((await fetch(uploadUrl, { method: 'PUT', body: 'eleven byte' })).status).toBe(413)
    const created = async () => (await ask('/job', { method: 'POST' })).status
    expect([await created(), await created()]).toEqual([415, 429])
    service.kill('SIGINT')
    await service.finished()
  })

  test('may have another name, and be JSON', async () => {
    // Some editors begin files with a byte-order mark.
    const mark = '\uFEFF'
    const folder = await folderWith({ 'other.json': `${mark}{ "data": "elsewhere" }` })
    const made = await command(['keys', 'create', '--config', 'other.json'], folder)
    expect(made.status, made.stderr).toBe(0)
    expect((await command(['keys', 'list', '--json', '--data', 'elsewhere'], folder)).stdout).toContain('"id"')
  })

  test.runIf(hasProgram('bun'))('may be TypeScript if Node can load it', async () => {
    const folder = await folderWith({ 'stemwork.config.ts': "const data: string = 'typed'\nexport default { data }" })
    const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
    const bun = spawn('bun', [main, 'keys', 'create'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const [said, [status]] = await Promise.all([text(bun.stderr), once(bun, 'exit')])
    expect(status, said).toBe(0)
    expect((await command(['keys', 'list', '--json', '--data', join(folder, 'typed')], place)).stdout).toContain('"id"')
  })
})

const mistakes: [what: string, name: string, content: string, says: RegExp][] = [
  ['a name that is not known', 'stemwork.config.json', '{ "publicURL": "x" }', /publicURL.*nearest name is publicUrl/],
  [
    'an old name',
    'stemwork.config.json',
    '{ "alias": [] }',
    /stemwork\.config\.json: alias was renamed\. Use aliases\./,
  ],
  ['a name of another world', 'stemwork.config.json', '{ "x": 1 }', /x is not known: expected only host, port, data/],
  ['a text for a switch', 'stemwork.config.json', '{ "console": "on" }', /console must be true or false, not "on"/],
  ['an empty text', 'stemwork.config.json', '{ "host": "" }', /host must be a string or a number, not ""/],
  ['empty texts', 'stemwork.config.json', '{ "apiKeys": [""] }', /apiKeys must be a string or a list of strings, not/],
  ['an object for a string', 'stemwork.config.json', '{ "port": {} }', /port must be a string or a number, not an obj/],
  ['a number out of range', 'stemwork.config.json', '{ "port": 99999 }', /port must be.*65535, not "99999"/],
  ['a list', 'stemwork.config.mjs', 'export default []', /default export of stemwork\.config\.mjs must be an object/],
  ['no export', 'stemwork.config.mjs', 'const port = 1', /default export of stemwork\.config\.mjs must be an object/],
  ['an option for code', 'stemwork.config.json', '{ "engine": { "owner": "x" } }', /engine\.owner cannot.*limits, ret/],
  ['a wrong option', 'stemwork.config.json', '{ "engine": { "quota": { "job": 1 } } }', /quota.*job/],
  ['no options', 'stemwork.config.json', '{ "handler": [] }', /handler must be an object with.* rateLimits/],
  ['no JSON', 'stemwork.config.json', '{ port: 1 }', /configuration file stemwork\.config\.json.*not JSON/],
  ['what throws', 'stemwork.config.mjs', 'throw new Error("torn")', /could not be loaded: Error: torn \(.*mjs:1\)/],
]

test.each(mistakes)('%s in a configuration file is refused', async (what, name, content, says) => {
  const { status, stderr } = await command(['serve'], await folderWith({ [name]: content }))
  expect(status).not.toBe(0)
  expectToTeach({ what, says: [says] }, stderr)
})

test('a variable that was renamed is refused with its new name', async () => {
  const service = new Stemwork(['serve'], await folderWith({}), { STEMWORK_ALIAS: 'own/one=service/loudness' })
  expect(await service.finished()).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('STEMWORK_ALIAS was renamed. Use STEMWORK_ALIASES.'),
  })
})

test('a missing configuration file is named in the error', async () => {
  const { stderr } = await command(['serve', '--config', 'nowhere.mjs'], await folderWith({}))
  expectToTeach({ what: 'file', says: [/configuration file nowhere\.mjs could not be loaded: There is no/] }, stderr)
})

test.skipIf(runsTypeScript())('TypeScript that cannot be loaded is refused, with what to do', async () => {
  const { stderr } = await command(['serve'], await folderWith({ 'stemwork.config.ts': 'export default {}' }))
  const says = [/stemwork\.config\.ts is TypeScript, which Node \S+ cannot load\. Use Node 22\.18.*config\.mjs/]
  expectToTeach({ what: 'TypeScript', says }, stderr)
})

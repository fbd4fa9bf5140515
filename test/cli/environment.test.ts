import { describe, expect, it } from 'vitest'
import { parseArguments } from '../../src/cli/input/arguments.js'
import { commands } from '../../src/cli/commands.js'
import { environmentValues, withEnvironment } from '../../src/cli/input/environment.js'
import { startService, Stemwork } from './stemwork.js'

const options = withEnvironment({
  port: { type: 'string', help: '' },
  'public-url': { type: 'string', help: '' },
  workflows: { type: 'string', multiple: true, help: '' },
  console: { type: 'boolean', help: '' },
})

describe('options from the environment', () => {
  it('have the names of the options', () => {
    expect(Object.values(options).map(({ variable }) => variable)).toEqual([
      'STEMWORK_PORT',
      'STEMWORK_PUBLIC_URL',
      'STEMWORK_WORKFLOWS',
      'STEMWORK_CONSOLE',
    ])
  })

  it('are text, lists with commas, and switches of 1 and 0', () => {
    const env = {
      STEMWORK_PORT: '80',
      STEMWORK_WORKFLOWS: 'a.mjs, b.mjs',
      STEMWORK_CONSOLE: '1',
      STEMWORK_PUBLIC_URL: '',
    }
    expect(environmentValues(options, env)).toEqual({ port: '80', workflows: ['a.mjs', 'b.mjs'], console: true })
    expect(environmentValues(options, { STEMWORK_CONSOLE: '0' })).toEqual({ console: false })
    expect(() => environmentValues(options, { STEMWORK_CONSOLE: 'yes' })).toThrow('STEMWORK_CONSOLE must be 1 or 0')
  })

  it('exist for every option of serve and worker, and are in the help', async () => {
    for (const name of ['serve', 'worker']) {
      const loaded = (await commands[name]?.load())?.options ?? {}
      expect(Object.entries(loaded).filter(([, { variable }]) => variable === undefined)).toEqual([])
    }
  })

  it('yield to the command line, which adds to lists', () => {
    process.env.STEMWORK_PORT = '80'
    process.env.STEMWORK_WORKFLOWS = 'a.mjs'
    try {
      const command = { options, positionals: { min: 0, max: 0 }, usage: 'test' }
      const { values } = parseArguments(['--port', '81', '--workflows', 'b.mjs'], command)
      expect(values).toEqual({ port: '81', workflows: ['a.mjs', 'b.mjs'] })
    } finally {
      delete process.env.STEMWORK_PORT
      delete process.env.STEMWORK_WORKFLOWS
    }
  })

  it('start a service, and name the variable that is wrong', async () => {
    const key = 'a-key-from-the-environment'
    const { process: service, baseUrl } = await startService([], { STEMWORK_API_KEYS: key, STEMWORK_CONSOLE: '1' })
    expect((await fetch(`${baseUrl}/application`, { headers: { authorization: key } })).status).toBe(200)
    expect((await fetch(`${baseUrl}/console`)).status).toBe(200)
    service.kill('SIGINT')
    await service.finished()
    const refused = await new Stemwork(['serve'], undefined, { STEMWORK_CONSOLE: 'maybe' }).finished()
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining('STEMWORK_CONSOLE must be 1 or 0') })
  })
})

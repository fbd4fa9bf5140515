import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commands } from '../../src/cli/commands.js'
import { actionHelp } from '../../src/cli/input/help.js'
import { hasProgram } from '../servers/found-server.js'
import { command, stemwork } from './stemwork.js'

describe('completion', () => {
  it.skipIf(!hasProgram('bash'))('completes commands, actions and options in bash', async () => {
    const { stdout: script } = await stemwork(['completion', 'bash'])
    const completed = (...words: string[]) => {
      const ask =
        `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; ` +
        `_stemwork; echo "\${COMPREPLY[*]}"`
      const { stdout, stderr } = spawnSync('bash', ['-c', `${script}\n${ask}`], { encoding: 'utf8' })
      expect(stderr).toBe('')
      return stdout.trim()
    }
    expect(completed('stemwork', 'se')).toBe('separate serve')
    expect(completed('stemwork', 'keys', 'r')).toBe('rotate revoke')
    expect(completed('stemwork', 'serve', '--po')).toBe('--port')
    expect(completed('stemwork', 'separate', 'song.mp3', '--for')).toBe('--format')
    expect(completed('stemwork', 'separate', 'x', 's')).toBe('')
  })

  it.for([
    ['zsh', ['-n']],
    ['fish', ['--no-execute']],
  ] as const)('has a script that %s can read, with every command', async ([shell, check], context) => {
    const { status, stdout } = await command(['completion', shell])
    expect(status).toBe(0)
    for (const name of Object.keys(commands)) expect(stdout).toContain(name)
    if (!hasProgram(shell)) return context.skip(`no ${shell}`)
    // A file, because fish cannot read the socket that Node.js passes as standard input.
    const file = join(tmpdir(), `stemwork-completion-${process.pid}.${shell}`)
    writeFileSync(file, stdout)
    const read = spawnSync(shell, [...check, file], { encoding: 'utf8' })
    rmSync(file)
    expect(read.status, read.stderr).toBe(0)
  })

  it('names the shells that it knows', async () => {
    expect(await command(['completion', 'tcsh'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Expected one of: bash, zsh, fish.'),
    })
  })
})

describe('the help of an action', () => {
  it.each([
    ['keys create', '--label', '--secret-file'],
    ['models pull', '--commercial', '--port'],
  ])('%s --help shows its options and no others', async (words, own, other) => {
    const { status, stdout } = await command([...words.split(' '), '--help'])
    expect(status).toBe(0)
    expect(stdout).toContain(`Usage: stemwork ${words}`)
    expect(stdout).toContain(own)
    expect(stdout).not.toContain(other)
  })

  it('exists for every action of every command', async () => {
    let count = 0
    for (const [name, { load }] of Object.entries(commands)) {
      const loaded = await load()
      for (const [action, { description }] of Object.entries(loaded.actions ?? {})) {
        expect(actionHelp(name, loaded, action)).toMatch(`Usage: stemwork ${name} ${action}`)
        expect(actionHelp(name, loaded, action, 1000)).toContain(description)
        count++
      }
      // Every action that the usage line offers has its own help.
      const offered = /<([a-z-]+(?: \| [a-z-]+)+)>/.exec(loaded.usage)?.[1]?.split(' | ') ?? []
      if (loaded.actions) expect(Object.keys(loaded.actions)).toEqual(expect.arrayContaining(offered))
    }
    expect(count).toBeGreaterThan(15)
  })

  it('names only options that the command has', async () => {
    for (const { load } of Object.values(commands)) {
      const { options, actions = {} } = await load()
      for (const { options: names } of Object.values(actions))
        expect(names.filter((name) => !Object.hasOwn(options, name))).toEqual([])
    }
  })
})

describe('colour', () => {
  it.skipIf(!hasProgram('script'))('is used on a terminal, and not in a pipe or with NO_COLOR', () => {
    const main = new URL('../../dist/cli/main.js', import.meta.url).pathname
    const onTerminal = (env: Record<string, string>) =>
      spawnSync('script', ['-qec', `${process.execPath} ${main} keys --help`, '/dev/null'], {
        encoding: 'utf8',
        env: { ...process.env, TERM: 'xterm', NO_COLOR: '', ...env },
      }).stdout
    expect(onTerminal({})).toContain('\u001B[1mUsage:')
    expect(onTerminal({ NO_COLOR: '1' })).not.toContain('\u001B')
    expect(spawnSync(process.execPath, [main, 'keys', '--help'], { encoding: 'utf8' }).stdout).not.toContain('\u001B')
  })
})

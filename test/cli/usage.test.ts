import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commands } from '../../src/cli/commands.js'
import { commandHelp } from '../../src/cli/input/help.js'
import { command, stemwork } from './stemwork.js'

describe('the command line', () => {
  it('lists every command in its help', async () => {
    const { status, stdout } = await stemwork(['--help'])
    expect(status).toBe(0)
    for (const name of Object.keys(commands)) expect(stdout).toContain(`  ${name} `)
  })

  it.each(Object.keys(commands))('explains %s with --help, which starts nothing', async (name) => {
    const { status, stdout, stderr } = await command([name, '--help'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(`Usage: stemwork ${name}`)
    const { options } = await commands[name]!.load()
    for (const option of Object.keys(options)) expect(stdout).toContain(`--${option}`)
  })

  it('wraps its help at the width of the terminal, at most 100 characters, except for long names', async () => {
    for (const { load } of Object.values(commands)) {
      const loaded = await load()
      for (const width of [70, 100]) {
        const [, ...lines] = commandHelp(loaded, width).split('\n')
        const isNameAlone = (line: string) => /^ +(-\w, )?(--\S+ <\S+>( \.\.\.)?|\S+)$/.test(line)
        expect(lines.filter((line) => line.length > width && !isNameAlone(line))).toEqual([])
      }
    }
  })

  it('prints the version of the package', async () => {
    const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(await stemwork(['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
  })

  it.each([
    [['separate', 'song.mp3', '--jsn'], 'Unknown option --jsn. Did you mean --json?'],
    [['separate', 'song.mp3', '--ouput=here'], 'Unknown option --ouput. Did you mean --output?'],
    [['separate', '-song.mp3'], 'Unknown option -s. A file name that starts with a dash is written ./-name.'],
    [['serve', '--alias', 'a=b'], '--alias was renamed. Use --aliases.'],
    [['worker', '--label=gpu'], '--label was renamed. Use --labels.'],
    [
      ['serve', '--aliases', 'own/a=b,own/c'],
      '--aliases must be like music-ai/some-name=service/some-name, not "own/c".',
    ],
    [['serve', '--prot', '80'], 'Unknown option --prot. Did you mean --port?'],
    [['serve', '--port', '--data', 'x'], '--port needs a value: --port <n>.'],
    [['serve', '--port', '99999'], '--port must be a whole number from 0 to 65535, not "99999".'],
    [
      ['serve', '--aliases', 'music-ai/stems'],
      '--aliases must be like music-ai/some-name=service/some-name, not "music-ai/stems".',
    ],
    [
      ['serve', '--public-url', 'stems.example.org'],
      '--public-url must be like https://stems.example.org, not "stems.example.org".',
    ],
    [['separate', 'song.mp3', '--json=yes'], '--json takes no value, but got "yes".'],
    [
      ['separate', 'song.mp3', '--format', '8'],
      '--format must be one of 16, 24, 32f, flac, flac24, mp3, aiff, aiff24, aiff32f, not "8".',
    ],
    [['separate', 'a.mp3', 'b.mp3'], 'Several files, a folder, --name, --jobs and --watch require a folder'],
    [
      ['separate', 'a.mp3', 'https://example.org/b.mp3', '-o', 'out'],
      'Several songs must be files or folders on this machine, but "https://example.org/b.mp3" is a URL.',
    ],
    [['separate', 'a.mp3', '-o', 'out', '--name', '{artist} - {title}'], '--name must have {stem} in the name'],
    [
      ['separate', 'a.mp3', '-o', 'out', '--name', '{singer}/{stem}'],
      '--name knows {artist}, {title}, {album}, {track}, {year}, {genre}, {file}, {stem}, {folder}, not {singer}.',
    ],
    [['models', 'list', 'a', 'b', 'c'], 'Unexpected argument "b". Usage: '],
    [
      ['doctor', '--cors', 'https://a.org', 'https://b.org'],
      'Unexpected argument "https://b.org". Repeat the option for each value: --cors a --cors b. Usage: ',
    ],
    [['separate'], 'An argument is missing.'],
    [['doctor', '--port', '99999'], '--port must be a whole number from 0 to 65535, not "99999".'],
    [['doctor', '--cors', 'example.org'], '--cors must be * or like https://app.example.org'],
    [['usage', '--data', '.', '--from', '2026-02-31'], '--from must be a day such as'],
    [['usage', '--data', '.', '--from', '2026-02-02', '--to', '2026-02-01'], '--from must be a day before --to'],
    [['seperate', 'song.mp3'], 'Unknown command seperate. Did you mean separate?'],
    [['--verson'], 'Unknown option --verson. Did you mean --version?'],
  ])('refuses %j with status 2 and says what was probably meant', async (args, message) => {
    const { status, stdout, stderr } = await command(args)
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(`stemwork: ${message}`)
    expect(stderr).toContain('--help')
  })

  it.each([
    [
      ['serve', '--store', 'sqlite:jobs.db', '--blobs', 'file:blobs', '--queue', 'postgres:'],
      '--queue postgres: notifies several processes, and --store sqlite:... is correct only while one process ' +
        'writes it.',
    ],
    [
      ['serve', '--queue', 'postgres://user:secret@db/jobs'],
      '--queue postgres:... notifies several processes, and --store memory: is correct only while one process ' +
        'writes it.',
    ],
    [
      ['worker', '--store', 'sqlite:jobs.db', '--blobs', 'file:blobs'],
      'A worker shares its jobs with other processes: --store must be postgres://..., which all of them reach.',
    ],
    [
      ['worker', '--store', 'postgres://db/jobs', '--blobs', 'file:blobs', '--queue', 'memory:'],
      '--queue must be postgres: or redis://..., which all of them reach.',
    ],
    [['serve', '--api-only'], 'give --store postgres://... and leave --queue out.'],
  ])('refuses options that do not go together: %j', async (args, message) => {
    const { status, stdout, stderr } = await command(args)
    expect({ isRefused: status !== 0, stdout }).toEqual({ isRefused: true, stdout: '' })
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('secret@')
  })

  it.each([
    ['missing.mjs', undefined, /There is no \S+missing\.mjs\. Check the path\./],
    ['cut.mjs', 'export default {', /SyntaxError: .* \(\S+cut\.mjs:\d+\)/],
    ['import.mjs', 'import "no-such-package"', /Cannot find package 'no-such-package' imported from \S+import\.mjs/],
    ['name.mjs', '\nimport { nope } from "node:fs"', /export named 'nope' \(\S+name\.mjs:2\)/],
    ['throws.mjs', '\nnull.x()', /TypeError: Cannot read .* \(\S+throws\.mjs:2\)/],
    ['composed.json', '{ "a": }', /it is not JSON: Unexpected token/],
  ])('says why the workflow file %s cannot be loaded', async (name, text, why) => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-usage-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, name)
    if (text !== undefined) await writeFile(path, text)
    const { status, stderr } = await command(['serve', '--workflows', path])
    expect(status).toBe(2)
    expect(stderr).toContain(`The workflow file ${path} could not be loaded: `)
    expect(stderr).toMatch(why)
  })

  it('says so if a workflow file waits for what cannot happen, at which Node ends without a word', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-usage-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'waits.mjs'), 'await new Promise(() => {})')
    expect(await stemwork(['serve', '--port', '0', '--workflows', join(folder, 'waits.mjs')])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The command ended before it was done'),
    })
  })

  it('shows its help on stderr, with status 2, when it is called with nothing', async () => {
    const { status, stdout, stderr } = await stemwork([])
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain('Usage: stemwork <command>')
  })
})

import { StemworkError } from '../core/engine/errors.js'
import { packageVersion } from '../core/engine/package-files.js'
import { parseArguments } from './input/arguments.js'
import { type Command, type CommandInput, exitStatus, type Terminal, UsageError } from './command.js'
import { commands } from './commands.js'
import { actionHelp, commandHelp, programHelp } from './input/help.js'
import { nearest } from '../core/engine/workflow/nearest.js'
import { styled } from './terminal/style.js'
import { causesOf, remedyBeyond } from './terminal/server-failure.js'
import { fullDiskText, systemErrorText } from './terminal/system-error.js'

/** Runs the whole program, from the arguments to the exit status of this process. */
export async function runProgram(): Promise<void> {
  const { stdout, stderr } = process
  // A reader that closes early (`stemwork --help | head -1`) is no failure.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    stderr.write(
      `stemwork: The output could not be written: ${error.message}. Free some space, or redirect it elsewhere.\n`,
    )
    process.exit(exitStatus.failed)
  })
  // A closed stderr must not end the work.
  stderr.on('error', () => undefined)
  let isDone = false
  process.once('exit', (status) => {
    // Node exits silently when nothing is pending any more.
    if (isDone || (status !== 0 && status !== 13)) return
    stderr.write(
      'stemwork: The command ended before it was done: what it waited for cannot happen any more, such as a ' +
        'top-level await of a workflow file. Correct that file.\n',
    )
    process.exitCode = exitStatus.failed
  })
  process.exitCode = await runCommandLine(process.argv.slice(2), { stdout, stderr })
  isDone = true
  // A failed command may have left a connection open, which would keep the process alive: pg keeps one for a minute to
  // a server that asks for a password when there is none.
  if (process.exitCode === exitStatus.failed) setTimeout(() => process.exit(), 1000).unref()
}

/** Runs the command that the arguments name. Resolves with the exit status. */
export async function runCommandLine([name, ...rest]: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(name, rest, terminal)
  } catch (error) {
    if (error instanceof UsageError) {
      terminal.stderr.write(
        `${styled(terminal.stderr, 'red', 'stemwork:')} ${error.message}\nSee stemwork ` +
          `${name !== undefined && Object.hasOwn(commands, name) ? `${name} ` : ''}--help.\n`,
      )
      return exitStatus.usage
    }
    terminal.stderr.write(`${styled(terminal.stderr, 'red', 'stemwork:')} ${failureText(error)}\n`)
    return StemworkError.is(error) && error.code === 'INVALID_OPTIONS' ? exitStatus.usage : exitStatus.failed
  }
}

async function dispatch(name: string | undefined, argv: string[], terminal: Terminal): Promise<number> {
  if (name === undefined) {
    terminal.stderr.write(programHelp(commands, helpWidth(terminal)))
    return exitStatus.usage
  }
  if (name === '--help' || name === '-h' || name === 'help') return show(programHelp(commands, helpWidth(terminal)))
  if (name === '--version' || name === '-v') return show(`${packageVersion()}\n`)
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!entry) throw unknownCommand(name)
  const command = await entry.load(argv)
  const input = parseArguments(argv, command)
  if (!input.isOn('help')) return command.run(await withConfiguration(input, command, argv), terminal)
  const width = helpWidth(terminal)
  return show(actionHelp(name, command, input.positionals[0] ?? '', width) ?? commandHelp(command, width))

  function show(text: string): number {
    terminal.stdout.write(
      text.replace(/^\w+:(?=\n| stemwork)/gm, (heading) => styled(terminal.stdout, 'bold', heading)),
    )
    return exitStatus.done
  }
}

/** Parses the arguments again with the configuration file, if the command reads one. */
async function withConfiguration(input: CommandInput, command: Command, argv: string[]): Promise<CommandInput> {
  if (!command.options.config) return input
  const { configured } = await import('./input/configuration.js')
  const all = async () => ({ ...(await commands.serve?.load())?.options, ...(await commands.worker?.load())?.options })
  return parseArguments(argv, command, await configured(input.text('config'), command.options, all))
}

function unknownCommand(name: string): UsageError {
  const isOption = name.startsWith('-')
  const match = nearest(name.replace(/^-+/, ''), isOption ? ['help', 'version'] : Object.keys(commands))
  const hint = match
    ? ` Did you mean ${isOption ? '--' : ''}${match}?`
    : ` Known commands: ${Object.keys(commands).join(', ')}.`
  return new UsageError(`Unknown ${isOption ? 'option' : 'command'} ${name}.${hint}`)
}

/** Longer lines than these are hard to read. */
function helpWidth({ stderr }: Terminal): number {
  return Math.min(100, stderr.columns ?? 100)
}

/** The message, its cause unless the message contains it already, and a remedy. */
function withCause(error: StemworkError): string {
  const isNews = ({ name, message }: Error) =>
    name !== 'ZodError' && message !== '' && !error.message.includes(message.split('. ', 1)[0] ?? message)
  const behind = causesOf(error.cause).find(isNews)
  return [error.message, behind && `(${behind.message})`, remedyBeyond(error)].filter(Boolean).join(' ')
}

/** Our own errors are written for users; anything else is a fault of the program, so its stack helps. */
function failureText(error: unknown): string {
  if (StemworkError.is(error)) {
    if (error.code !== 'INTERNAL_ERROR' || !(error.cause instanceof Error)) return withCause(error)
    return fullDiskText(error.cause) ?? `${error.message}\n${error.cause.stack}`
  }
  if (error instanceof Error && 'syscall' in error) return systemErrorText(error as NodeJS.ErrnoException)
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

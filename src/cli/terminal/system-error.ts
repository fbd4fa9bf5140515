import { codeOf, StemworkError } from '../../core/engine/errors.js'

type SystemError = NodeJS.ErrnoException & { address?: string; hostname?: string; port?: number }
type Explanations = Record<string, ((facts: SystemError & { file: string }) => string) | undefined>

const noAddress = ({ address, hostname }: SystemError) =>
  `This machine has no address ${address ?? hostname}. Choose another --host, such as 127.0.0.1 or 0.0.0.0.`
const noFolder = ({ file }: { file: string }) => `No folder can be made at ${file}. Name a path in another folder.`
const isReadOnly = ({ file }: { file: string }) =>
  `The disk with ${file} can only be read. Name a path on another disk (TMPDIR for temporary files), or mount it for ` +
  'writing.'
const noPermission = ({ file }: { file: string }) =>
  `This process has no permission to use ${file}. Check its owner and its mode, or name another path.`
const isFile = ({ file }: { file: string }) =>
  `${file} cannot be created as a folder: a file has this name. Name another folder.`
const isFull = ({ file }: { file: string }) =>
  `There is no space left for ${file}. Free some space, or use a path on another disk.`

const ofListening: Explanations = {
  EADDRINUSE: ({ address, port }) =>
    `Port ${port} of ${address} is in use. Stop the program that listens there, ` +
    'or choose another --port (0 for a free one).',
  EACCES: ({ port }) => `Port ${port} needs more privileges than this process has. Choose a --port above 1023.`,
  EADDRNOTAVAIL: noAddress,
  ENOTFOUND: noAddress,
}

const ofFiles: Explanations = {
  ENOENT: (facts) => (facts.syscall === 'mkdir' ? noFolder(facts) : `There is no ${facts.file}. Check the path.`),
  EACCES: noPermission,
  EPERM: noPermission,
  EROFS: isReadOnly,
  ENOTDIR: isFile,
  EEXIST: isFile,
  EISDIR: ({ file }) => `${file} is a folder where a file was expected. Name a file.`,
  ENOSPC: isFull,
  EDQUOT: isFull,
  EMFILE: () => 'This process has too many files open. Raise its limit (ulimit -n).',
}

/** A system error in words that say what to do, followed by the system's own message. */
export function systemErrorText(error: SystemError): string {
  const { syscall, path, message } = error
  const said = (syscall === 'listen' || syscall === 'getaddrinfo' ? ofListening : ofFiles)[codeOf(error)]
  return said === undefined ? message : `${said({ ...error, file: path ?? 'a file' })} (${message})`
}

/** Explains work in a child process that failed for lack of space: its errors keep their code, but not their path. */
export function fullDiskText(error: Error): string | undefined {
  if (!['ENOSPC', 'EDQUOT'].includes(codeOf(error))) return undefined
  return `${isFull({ file: 'the files that are being written' })} (${error.message})`
}

/** The error's message for the user of a command; internal errors include their cause, as no log shows it. */
export function workErrorText(error: unknown): string {
  if (!StemworkError.is(error) || error.code !== 'INTERNAL_ERROR') return messageOf(error)
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  return fullDiskText(cause) ?? `The work failed by a defect of the program. (${messageOf(cause)})`
}

function messageOf(error: unknown): string {
  if (StemworkError.is(error)) return error.message
  if (error instanceof Error && 'syscall' in error) return systemErrorText(error as SystemError)
  return error instanceof Error ? error.message : String(error)
}

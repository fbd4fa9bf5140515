/**
 * A failure of the system in words that say what to do; the system's own message stays behind them for those who know
 * it.
 */
export function systemErrorText(error: NodeJS.ErrnoException): string {
  const said = explanation(error)
  return said === undefined ? error.message : `${said} (${error.message})`
}

function explanation({
  code,
  syscall,
  path,
  ...rest
}: NodeJS.ErrnoException & { address?: string; port?: number }): string | undefined {
  if (syscall === 'listen') {
    const { address, port } = rest
    switch (code) {
      case 'EADDRINUSE':
        return (
          `Port ${port} of ${address} is in use. Stop the program that listens there, or choose another --port ` +
          '(0 for a free one).'
        )
      case 'EACCES':
        return `Port ${port} needs more privileges than this process has. Choose a --port above 1023.`
      case 'EADDRNOTAVAIL':
      case 'ENOTFOUND':
        return `This machine has no address ${address}. Choose another --host, such as 127.0.0.1 or 0.0.0.0.`
      default:
        return undefined
    }
  }
  const file = path ?? 'a file'
  switch (code) {
    case 'ENOENT':
      return `There is no ${file}. Check the path.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `This process has no permission to use ${file}. Check its owner and its mode, or name another path.`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${file} cannot be created as a folder: a file has this name. Name another folder.`
    case 'EISDIR':
      return `${file} is a folder where a file was expected. Name a file.`
    case 'ENOSPC':
    case 'EDQUOT':
      return `There is no space left for ${file}. Free some space, or use a path on another disk.`
    case 'EMFILE':
      return 'This process has too many files open. Raise its limit (ulimit -n).'
    default:
      return undefined
  }
}

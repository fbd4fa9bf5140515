/**
 * Whether this page can separate: it needs a secure context (HTTPS or localhost) and a file system of the browser.
 *
 * @experimental
 */
export function canSeparate(): boolean {
  return (
    globalThis.isSecureContext &&
    typeof Worker === 'function' &&
    'locks' in navigator &&
    typeof FileSystemFileHandle === 'function' &&
    'createWritable' in FileSystemFileHandle.prototype
  )
}

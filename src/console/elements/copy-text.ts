/** Copies the text of an element. Returns the outcome in words for the message board. */
export async function copyText(shown: HTMLElement | null): Promise<string> {
  if (!shown) return ''
  getSelection()?.selectAllChildren(shown)
  const isCopied = await copied(shown.textContent ?? '')
  return isCopied ? 'Copied' : 'The browser did not copy it. It is selected: press Ctrl+C, or ⌘C on a Mac.'
}

async function copied(text: string): Promise<boolean> {
  // Pages on plain http have no clipboard, and can only ask the browser to copy the selection.
  const { clipboard } = navigator as Partial<Navigator>
  if (clipboard)
    return clipboard.writeText(text).then(
      () => true,
      () => false,
    )
  // oxlint-disable-next-line typescript/no-deprecated -- there is nothing else on plain http
  return document.execCommand('copy')
}

const focusable = 'a[href], button:not(:disabled), input:not(:disabled), select, summary'

/**
 * An element may disappear while it has the focus: a row with its last button, a message that was answered. Browsers
 * then focus nothing, and people who use a keyboard or a screen reader are back at the top. Here the focus moves to
 * what is next to it.
 */
export function keepFocus(root: HTMLElement): void {
  /** The focused element and what it lies in, inside out. */
  let path: Element[] = document.activeElement === document.body ? [] : withAncestors(document.activeElement)
  root.addEventListener('focusin', ({ target }) => (path = target instanceof Element ? withAncestors(target) : []))
  root.addEventListener('focusout', ({ target, relatedTarget }) => {
    // A click on nothing takes the focus away on purpose; a removed element is no longer connected.
    if (relatedTarget === null) setTimeout(() => target === path[0] && path[0]?.isConnected && (path = []))
  })
  new MutationObserver(() => {
    if (path[0]?.isConnected !== false || document.activeElement !== document.body) return
    const ancestor = path.find(({ isConnected }) => isConnected)
    const near = ancestor?.closest('li')?.querySelector<HTMLElement>(focusable)
    const heading = document.querySelector<HTMLElement>('main h1[tabindex]') ?? document.querySelector('main')
    const next = near ?? heading
    next?.focus()
  }).observe(root, { childList: true, subtree: true })
}

function withAncestors(element: Element | null): Element[] {
  const path: Element[] = []
  for (let one = element; one; one = one.parentElement) path.push(one)
  return path
}

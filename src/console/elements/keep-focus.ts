const focusable = 'a[href], button:not(:disabled), input:not(:disabled), select, summary'

/**
 * Keeps the focus near an element that disappears while focused: a row with its last button, a message that was
 * answered. Browsers would focus nothing, which puts people who use a keyboard or a screen reader back at the top. The
 * focus moves to a control in the same list item, or else to the heading.
 */
export function keepFocus(root: HTMLElement): void {
  /** The focused element and its ancestors, innermost first. */
  let path: Element[] = document.activeElement === document.body ? [] : withAncestors(document.activeElement)
  root.addEventListener('focusin', ({ target }) => (path = target instanceof Element ? withAncestors(target) : []))
  root.addEventListener('focusout', ({ target, relatedTarget }) => {
    // A click on nothing removes the focus on purpose; a removed element is no longer connected.
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

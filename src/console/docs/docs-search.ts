/** The search of `/docs`, loaded when its field is used: hides routes and schemas that do not have all of the words. */
export function searchIn(input: HTMLInputElement, status: HTMLElement): void {
  const sections = [...document.querySelectorAll<HTMLElement>('main > section[id]')].map((section) => ({
    section,
    entry: document.querySelector(`.contents a[href="#${section.id}"]`)?.closest('li'),
    text: section.textContent.toLowerCase(),
  }))
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    for (const { section, entry, text } of sections) {
      section.hidden = !words.every((word) => text.includes(word))
      if (entry) entry.hidden = section.hidden
    }
    // Hides titles without any match below them.
    for (const title of document.querySelectorAll<HTMLElement>('main > h2')) {
      let next = title.nextElementSibling as HTMLElement | null
      while (next?.hidden) next = next.nextElementSibling as HTMLElement | null
      title.hidden = next?.tagName !== 'SECTION'
    }
    const found = sections.filter(({ section }) => !section.hidden)
    status.textContent = words.length === 0 ? '' : `${found.length} found`
  }
  input.addEventListener('input', show)
  input.addEventListener('keydown', ({ key }) => {
    if (key === 'Enter') sections.find(({ section }) => !section.hidden)?.section.scrollIntoView()
  })
  // A link to a hidden section clears the search.
  addEventListener('hashchange', () => {
    const target = document.querySelector<HTMLElement>(location.hash || 'main')
    if (!target?.closest('[hidden]')) return
    input.value = ''
    show()
    target.scrollIntoView()
  })
  show()
}

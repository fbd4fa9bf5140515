export function Brand() {
  return (
    <a class="brand" href="#/">
      <svg viewBox="0 0 32 32" width="27" aria-hidden="true">
        <rect x="3" y="12" width="4" height="8" rx="2" fill="var(--vocals)" />
        <rect x="10" y="5" width="4" height="22" rx="2" fill="var(--vocals)" />
        <rect x="18" y="8" width="4" height="16" rx="2" fill="var(--music)" />
        <rect x="25" y="12" width="4" height="8" rx="2" fill="var(--music)" />
      </svg>
      stemwork
    </a>
  )
}

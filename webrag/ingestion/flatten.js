// Makes a drawn page readable as HTML; null where it is longer than allowed.
(most) => {
  const flatten = (root) => {
    for (const host of root.querySelectorAll('*')) {
      if (!host.shadowRoot) continue;
      for (const slot of host.shadowRoot.querySelectorAll('slot'))
        slot.replaceWith(...slot.assignedNodes({flatten: true}).map(n => n.cloneNode(true)));
      flatten(host.shadowRoot);
      const parts = [...host.shadowRoot.childNodes].filter(n => n.nodeName !== 'STYLE');
      host.replaceChildren(...parts);
    }
  };
  flatten(document);
  const dead = 'noscript, iframe, script:not([type="application/ld+json"])';
  for (const element of document.querySelectorAll(dead)) element.remove();
  const html = `${document.documentElement.outerHTML}`;
  return html.length > most ? null : html;
}
